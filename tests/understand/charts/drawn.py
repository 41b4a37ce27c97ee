"""Reading a chart back."""

import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
NAN, INF = float("nan"), float("inf")


def parse(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    assert root[0].tag == SVG + "title"
    assert root[0].text
    assert root.find(SVG + "desc") is not None
    assert not re.search(r"[\"( ,](nan|inf|-inf)[\") ,LM]", re.sub(r"<(title|desc|text)[^>]*>[^<]*", "", svg))
    for element in root.iter():
        for key, value in element.attrib.items():
            assert not key.startswith("on")
            if key in ("width", "height", "r"):
                assert float(value) >= 0
    svg.encode()
    return root


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parse(svg).iter(SVG + "text")]
