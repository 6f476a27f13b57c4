"""The web framework: the only module that imports FastAPI and its components."""

from fastapi import APIRouter, Body, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "APIRouter",
    "ASGIApp",
    "AfterValidator",
    "BaseModel",
    "Body",
    "ConfigDict",
    "FastAPI",
    "Field",
    "HTTPException",
    "Message",
    "Query",
    "Receive",
    "Request",
    "RequestValidationError",
    "Response",
    "Scope",
    "Send",
    "StreamingResponse",
    "StrictBool",
    "StrictInt",
    "StrictStr",
]
