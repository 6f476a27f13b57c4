"""What an HTML page consists of."""

import re
from html.parser import HTMLParser

VOID = {"meta", "input", "img", "link", "br"}
"""Elements without an end."""


class Outline(HTMLParser):
    """Which elements, ids and attributes a page has, and whether its tags are in pairs."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.references = [], [], [], []
        self.handlers = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
                self.references.append(value)
            if key.startswith("on"):
                self.handlers.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def headings(text):
    return re.findall(r'<h2 id="(.*?)-heading">', text)
