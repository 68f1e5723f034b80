"""A copy of the bank for others: one table, a Croissant description, checksums and a card.

::

    python -m judge_calibration.bank.publish data/01_raw/pair_bank OUT

writes ``pairs.parquet``, ``croissant.json`` (Croissant 1.1, the JSON-LD format that data set catalogs
read), ``SHA256SUMS`` and ``README.md``. Pairs of a private sentinel never get in.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.bank.build import build_pairs, published
from judge_calibration.bank.design import check_design
from judge_calibration.bank.tasks import Bank, load_bank
from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.schemas import PAIRS

DESCRIPTION = (
    "Controlled pairs of answers for testing LLM judges. Each pair puts one canonical answer beside the same "
    "answer changed in a single declared dimension: length, style, citation, correctness, or nothing at all. "
    "Written by a language model and checked by program; not reviewed by human experts."
)
_MEANINGS = {
    "pair_id": "The pair's id: a hash that tells nothing.",
    "base_id": "The base task; resample by it, for pairs of one task depend on each other.",
    "modified": "The side whose answer was changed; null if both are the same bytes.",
    "twin_pair_id": "The pair that is this one without the polish or the injection.",
    "expected": "The expected verdict, by construction.",
    "quality_gap": "0 where a tie is expected; .5 for a small, 1 for a large error; null otherwise.",
    "source_packet": "JSON list of the passages that the answers may cite.",
    "mutation_diff": "JSON list of the changes that turn the canonical answer into the changed one.",
    "sentinel": "Whether the pair belongs to the subset that is judged again whenever a judge changes.",
    "content_hash": "SHA-256 of what a judge may see.",
}
_TYPES = {"text": "sc:Text", "integer": "sc:Integer", "number": "sc:Float", "boolean": "sc:Boolean"}
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
    "value": "cr:value",
}
_DEEDS = {
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC-BY-SA-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}


def licence_address(name: str) -> str:
    """Return where the text of an SPDX licence stands."""
    return _DEEDS.get(name, f"https://spdx.org/licenses/{name}.html")


def file_object(path: str, size: int, sha256: str, encoding: str) -> dict[str, Any]:
    """Return the Croissant description of one file."""
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{size} B",
        "encodingFormat": encoding,
        "sha256": sha256,
    }


def field_object(table: str, column: str, data_type: str, path: str, description: str = "") -> dict[str, Any]:
    """Return the Croissant description of one column of a table in a file."""
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "description": description or column.replace("_", " ") + ".",
        "dataType": data_type,
        "source": {"fileObject": {"@id": path}, "extract": {"column": column}},
    }


def describe(bank: Bank, pairs: pd.DataFrame, sha256: str, size: int) -> dict[str, Any]:
    """Return the Croissant description of the published table.

    Parameters
    ----------
    bank : Bank
        For its name, version, license and provenance.
    pairs : pandas.DataFrame
        The published table.
    sha256 : str
        The checksum of ``pairs.parquet``.
    size : int
        Its bytes.

    Returns
    -------
    dict
        JSON-LD.
    """
    fields = [
        field_object("pairs", one.name, _TYPES[one.kind], "pairs.parquet", _MEANINGS.get(one.name, ""))
        for one in PAIRS.columns
    ]
    optional = {"datePublished": bank.card.date, "url": bank.card.url}
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": "judge-calibration-pair-bank",
        "description": f"{DESCRIPTION} {len(pairs)} pairs of {pairs['base_id'].nunique()} base tasks.",
        "citeAs": f"{bank.card.name}, version {bank.card.version}.",
        "creator": {"@type": "sc:Organization", "name": "The judge-calibration project"},
        "inLanguage": sorted(pairs["language"].unique()),
        "isLiveDataset": False,
        "keywords": ["LLM-as-a-judge", "calibration", "controlled pairs", "evaluation"],
        "license": licence_address(bank.card.license),
        "version": bank.card.version if bank.card.version.count(".") == 2 else f"{bank.card.version}.0",
        "rai:dataCollection": bank.card.provenance,
        "rai:personalSensitiveInformation": "None: people and organisations in the packets are invented.",
        "distribution": [file_object("pairs.parquet", size, sha256, "application/x-parquet")],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "pairs",
                "name": "pairs",
                "description": "One record a pair.",
                "key": {"@id": "pairs/pair_id"},
                "field": fields,
            }
        ],
    } | {name: value for name, value in optional.items() if value}


def publish(bank: Bank, folder: Path) -> list[Path]:
    """Check the bank and write its copy for others.

    Parameters
    ----------
    bank : Bank
        It may hold a private sentinel, which is left out.
    folder : Path
        Made if it is not there. Files of the same names are replaced.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    BankError
        If the bank breaks its design; then nothing is written.
    """
    pairs = build_pairs(bank)
    check_design(bank, pairs)
    public = published(pairs)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "pairs.parquet"
    public.to_parquet(table, index=False)
    content = table.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    texts = {
        "croissant.json": json.dumps(
            describe(bank, public, digest, len(content)), indent=2, ensure_ascii=False
        )
        + "\n",
        "README.md": _readme(bank, public),
    }
    sums = {"pairs.parquet": digest}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
        sums[name] = hashlib.sha256(text.encode("utf-8")).hexdigest()
    (folder / "SHA256SUMS").write_text(
        "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())),
        encoding="utf-8",
        newline="\n",
    )
    return [folder / name for name in (*sorted(sums), "SHA256SUMS")]


def _readme(bank: Bank, pairs: pd.DataFrame) -> str:
    languages = "\n".join(f"  - {language}" for language in sorted(pairs["language"].unique()))
    counts = pairs["manipulation"].value_counts().sort_index()
    table = "\n".join(f"| {name} | {count} |" for name, count in counts.items())
    return f"""---
license: {bank.card.license.lower()}
language:
{languages}
configs:
  - config_name: default
    data_files: pairs.parquet
---

# {bank.card.name}, version {bank.card.version}

{DESCRIPTION}

{bank.card.provenance}

| manipulation | pairs |
|---|---|
{table}

A pair's `expected` verdict holds by construction: a tie for length, style and identity, the canonical answer
otherwise. Resample by `base_id`. A public test can become familiar to the developers of models, so keep a
private sentinel beside it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Check a bank and write its copy for others."""
    parser = argparse.ArgumentParser(
        prog="python -m judge_calibration.bank.publish", description=main.__doc__
    )
    parser.add_argument("folder", type=Path, help="the bank: it holds bank.yml and tasks/")
    parser.add_argument("out", type=Path, help="the folder to write")
    given = parser.parse_args(arguments)
    try:
        for path in publish(load_bank(given.folder), given.out):
            print(path)
    except (JudgeCalibrationError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
