"""The models that GPN is compared with, behind one interface: fit, predict."""
