"""Made-up exports in the layouts of annotation tools, each with the votes that it holds, counted by hand."""
# ruff: noqa: E501  # rows of exports are long

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LABEL_STUDIO_CSV = '''"annotation_id","annotator","created_at","id","lead_time","sentiment","text","updated_at"
9,"a@x.org","2026-01-04T18:50:53Z",4,10.7,"Positive","good film","2026-01-04T18:50:53Z"
10,"b@x.org","2026-01-04T18:51:20Z",4,7.2,"{""choices"": [""Neutral"", ""Negative""]}","good film","2026-01-04T18:51:20Z"
11,"a@x.org","2026-01-04T18:52:53Z",5,3.7,"Negative","bad film, ""really""","2026-01-04T18:52:53Z"
12,"b@x.org","2026-01-04T18:53:53Z",5,3.1,"","bad film, ""really""","2026-01-04T18:53:53Z"
'''

LABEL_STUDIO_MIN = [
    {"text": "good film", "id": 4, "sentiment": "Positive", "annotator": 1, "annotation_id": 9, "lead_time": 1.5},
    {
        "text": "good film",
        "id": 4,
        "sentiment": {"choices": ["Neutral", "Negative"]},
        "annotator": 2,
        "annotation_id": 10,
    },
    {"text": "bad film", "id": 5, "sentiment": "Negative", "annotator": 1, "annotation_id": 11, "agreement": 100.0},
    {"text": "bad film", "id": 5, "annotator": 2, "annotation_id": 12},
]


def choice(label: str | None, name: str = "sentiment") -> list[dict[str, Any]]:
    """The results of an annotation of Label Studio."""
    value = {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    region = {
        "from_name": "part",
        "to_name": "text",
        "type": "labels",
        "value": {"start": 0, "end": 4, "labels": ["A"]},
    }
    return [value, region] if label else [region]


LABEL_STUDIO = [
    {
        "id": 4,
        "data": {"text": "good film", "year": 1999},
        "annotations": [
            {
                "id": 1,
                "completed_by": {"id": 7, "email": "a@x.org"},
                "result": choice("Positive"),
                "ground_truth": False,
            },
            {"id": 2, "completed_by": 8, "result": choice("Neutral"), "was_cancelled": True},
            {"id": 3, "completed_by": 9, "result": choice("Positive"), "ground_truth": True},
            {"id": 4, "completed_by": 10, "result": choice("Negative"), "was_cancelled": False},
        ],
        "drafts": [{"id": 5, "user": "c@x.org", "result": choice("Neutral")}],
        "predictions": [{"result": choice("Neutral"), "score": 0.5}],
    },
    {
        "id": 5,
        "data": {"text": "bad film", "year": 2001},
        "annotations": [{"id": 6, "completed_by": 10, "result": []}],
        "drafts": [],
    },
]

PRODIGY = [
    {
        "text": "good film", "_input_hash": -91551573, "_task_hash": 1, "options": [{"id": "POS"}, {"id": "NEG"}],
        "_view_id": "choice", "accept": ["POS"], "answer": "accept", "_annotator_id": "films-alice", "meta": {"page": 1},
    },
    {"text": "good film", "_input_hash": -91551573, "accept": [], "answer": "ignore", "_annotator_id": "films-bob"},
    {"text": "good film", "_input_hash": -91551573, "accept": ["NEG"], "answer": "reject", "_annotator_id": "films-eve"},
    {"text": "good film", "_input_hash": -91551573, "accept": [], "answer": "accept", "_annotator_id": "films-dan"},
    {"text": "bad film", "_input_hash": 12, "accept": ["NEG", "POS"], "answer": "accept", "_session_id": "films-alice"},
]  # fmt: skip

PRODIGY_BINARY = [
    {"text": "good", "_input_hash": 1, "label": "POS", "answer": "accept", "_session_id": "a"},
    {"text": "good", "_input_hash": 1, "label": "POS", "answer": "reject", "_session_id": "b"},
    {"text": "good", "_input_hash": 1, "label": "POS", "answer": "ignore", "_session_id": "c"},
]

DOCCANO = {
    "export/alice.jsonl": '{"id": 1, "text": "Great price.", "label": ["positive"], "Comments": []}\n'
    '{"id": 2, "text": "Late.", "label": ["negative"], "Comments": []}\n',
    "export/bob.jsonl": '{"id": 1, "text": "Great price.", "label": []}\n{"id": 2, "text": "Late.", "label": ["negative"]}\n',
    "__MACOSX/export/._bob.jsonl": "\0",
    "readme.txt": "written by doccano",
}

ARGILLA = [
    {
        "id": "r1",
        "fields": {"text": "good film"},
        "metadata": {"year": 1999},
        "suggestions": {"sentiment": {"value": "neg", "score": 0.7, "agent": "m"}},
        "responses": {
            "sentiment": [{"value": "pos", "user_id": "u1"}, {"value": "neg", "user_id": "u2", "status": "draft"}],
            "topics": [{"value": ["a", "b"], "user_id": "u1"}],
        },
        "vectors": {},
    },
    {"id": "r2", "fields": {"text": "bad film"}, "metadata": {}, "suggestions": {}, "responses": {}},
]


def zooniverse_row(number: int, user: str, version: str, tasks: Any, subject: int, gold: str = "") -> str:
    """A row of classifications of Zooniverse, with JSON in three cells."""
    data = {str(subject): {"retired": None, "Filename": f"{subject}.png"}}
    cells = [json.dumps(each).replace('"', '""') for each in ({"session": "x"}, tasks, data)]
    return f'{number},{user},,hash,88,Galaxies,{version},2026-01-0{number % 9 + 1} 10:00:00 UTC,{gold},,"{cells[0]}","{cells[1]}","{cells[2]}",{subject}\n'


def task(value: Any, name: str = "T0") -> dict[str, Any]:
    """An answer to a task of Zooniverse."""
    return {"task": name, "task_label": "Is it smooth?", "value": value}


ZOONIVERSE_HEADER = (
    "classification_id,user_name,user_id,user_ip,workflow_id,workflow_name,workflow_version,created_at,gold_standard,"
    "expert,metadata,annotations,subject_data,subject_ids\n"
)
DRAWN = task([{"x": 3.5, "y": 4, "tool": 0}], "T1")
ZOONIVERSE = ZOONIVERSE_HEADER + "".join(
    [
        zooniverse_row(1, "alice", "9.2", [task("Smooth")], 501),
        zooniverse_row(2, "not-logged-in-ab12", "10.1", [task("Smooth"), DRAWN], 501),
        zooniverse_row(3, "bob", "10.1", [task("![disk](https://z.org/a.png =20x) Features, or disk")], 501),
        zooniverse_row(4, "carol", "10.1", [task(None)], 501),
        zooniverse_row(5, "dave", "10.1", [task("")], 501),
        zooniverse_row(6, "erin", "10.1", [task([])], 502),
        zooniverse_row(7, "bob", "10.1", [task(["Smooth", "Star"])], 502),
        zooniverse_row(8, "expert", "10.1", [task("Star")], 502, gold="true"),
        zooniverse_row(9, "alice", "10.1", [task([task("Star"), DRAWN], "T9")], 502),
    ]
)

PANOPTES = """subject_id,workflow_id,task,reducer,data.blue,data.no,data.yes,data.None,data.aggregation_version
1,4249,T0,question_reducer,,1.0,3.0,2.0,4.1.0
1,4249,T1,question_reducer,2.0,,,,4.1.0
2,4249,T0,question_reducer,,2.0,,,4.1.0
2,4249,T1,question_reducer,1.0,,,,4.1.0
"""

MTURK = """"HITId","HITTypeId","Title","AssignmentId","WorkerId","AssignmentStatus","WorkTimeInSeconds","Input.image_url","Answer.label","Approve","Reject"
"H1","T","Films","A1","W1","Approved","12","https://x.org/1.jpg","cat","",""
"H1","T","Films","A2","W2","Rejected","2","https://x.org/1.jpg","dog","","too fast"
"H1","T","Films","A3","W3","Submitted","9","https://x.org/1.jpg","dog","",""
"H2","T","Films","A4","W1","Approved","9","https://x.org/2.jpg","","",""
"H3","T","Films","A5","W1","Approved","9","https://x.org/1.jpg","cat|dog","",""
"""

MTURK_BOOLEAN = """"HITId","AssignmentId","WorkerId","AssignmentStatus","Input.text","Input.page","Answer.label.cat","Answer.label.dog"
"H1","A1","W1","Approved","a","1","true","false"
"H1","A2","W2","Approved","a","1","false","true"
"H2","A3","W2","Approved","b","1","false","false"
"H2","A4","W3","Approved","b","1","true","true"
"""

MTURK_TASK_ANSWERS = """"HITId","AssignmentId","WorkerId","AssignmentStatus","Input.text","Answer.taskAnswers"
"H1","A1","W1","Approved","a","[{""category"":{""label"":""Positive""}}]"
"H1","A2","W2","Approved","a","[{""category"":{""label"":""Negative""}}]"
"""

APPEN = """_unit_id,_created_at,_golden,_id,_missed,_started_at,_tainted,_channel,_trust,_worker_id,_country,_region,_city,_ip,airline_sentiment,orig__golden,airline_sentiment_gold,name,text
570,2/25/2015 09:08:59,false,1,,2/25/2015 09:08:20,false,c,0.9,31,USA,NA,NA,1.2.3.4,positive,,,Ann,good flight
570,2/25/2015 09:09:59,false,2,,2/25/2015 09:08:20,true,c,0.3,32,USA,NA,NA,1.2.3.5,negative,,,Ann,good flight
570,2/25/2015 09:19:59,false,3,,2/25/2015 09:08:20,false,c,0.8,33,NA,NA,NA,1.2.3.6,neutral,,,Ann,good flight
571,2/25/2015 09:19:59,true,4,,2/25/2015 09:08:20,false,c,0.8,33,NA,NA,NA,1.2.3.6,negative,TRUE,negative,Bob,lost my bag
572,2/25/2015 09:19:59,false,5,,2/25/2015 09:08:20,false,c,0.8,33,NA,NA,NA,1.2.3.6,"positive
neutral",,,Cat,nice
"""

APPEN_AGGREGATED = """_unit_id,_golden,_unit_state,_trusted_judgments,_last_judgment_at,sentiment,sentiment:confidence,text
867,false,finalized,3,1/28/2016 19:02:18,positive,0.67,good flight
"""

TOLOKA = """INPUT:url\tOUTPUT:code\tOUTPUT:remark\tGOLDEN:code\tHINT:text\tASSIGNMENT:link\tASSIGNMENT:assignment_id\tASSIGNMENT:worker_id\tASSIGNMENT:status\tASSIGNMENT:started
https://x.org/1\t200\t\t\t\thttps://t\ta1\tw1\tAPPROVED\t2026-01-01T10:00:00
https://x.org/1\t404\t\t\t\thttps://t\ta2\tw2\tSUBMITTED\t2026-01-01T10:00:00
https://x.org/1\t404\t\t\t\thttps://t\ta3\tw3\tREJECTED\t2026-01-01T10:00:00
\t\t\t\t\t\t\t\t\t
https://x.org/2\t200\t\t200\t\thttps://t\ta1\tw1\tAPPROVED\t2026-01-01T10:00:00
https://x.org/3\t\t\t\t\thttps://t\ta4\tw2\tSKIPPED\t2026-01-01T10:00:00
"""

QUALTRICS = """\ufeffStartDate,EndDate,Status,Progress,Finished,RecordedDate,ResponseId,Q1_1,Q1_2,Q2
Start Date,End Date,Response Type,Progress,Finished,Recorded Date,Response ID,Rate the film - Film A,Rate the film - Film B,"Your age,
in years"
"{""ImportId"":""startDate"",""timeZone"":""Z""}","{""ImportId"":""endDate""}","{""ImportId"":""status""}","{""ImportId"":""progress""}","{""ImportId"":""finished""}","{""ImportId"":""recordedDate""}","{""ImportId"":""_recordId""}","{""ImportId"":""QID1_1""}","{""ImportId"":""QID1_2""}","{""ImportId"":""QID2_TEXT""}"
2026-01-01,2026-01-01,IP Address,100,True,2026-01-01,R_1,5,3,40
2026-01-01,2026-01-01,IP Address,100,True,2026-01-01,R_2,4,,31
2026-01-01,2026-01-01,Survey Preview,100,True,2026-01-01,R_3,1,1,20
2026-01-01,2026-01-01,IP Address,40,False,2026-01-01,R_4,2,,
"""

GOOGLE_FORMS = """Timestamp,Email Address,Rate the film [Film A],Rate the film [Film B],Anything else?
2026/01/04 6:50:53 PM GMT,a@x.org,Good,Bad,"nice, really"
2026/01/04 6:51:53 PM GMT,b@x.org,Bad,,
2026/01/04 6:51:53 PM GMT,,Good,Good,
"""

LEWIDI_2023 = {
    "1": {
        "text": "first", "annotation task": "offensiveness", "number of annotations": 3, "annotations": "0,0,1",
        "annotators": "Ann1,Ann2,Ann3", "lang": "en", "hard_label": "0", "soft_label": {"0": 0.67, "1": 0.33},
        "split": "train", "other_info": {"domain": "BLM", "other annotations": {"hate": "0,1,1"}},
    },
    "2": {
        "text": "second", "annotations": "1,0", "annotators": "Ann1,Ann4", "lang": "en", "split": "train",
        "other_info": {"domain": "Covid"},
    },
}  # fmt: skip

LEWIDI_2025 = """{
 "3944": {"text": {"context": "Steve sighs.", "response": "Sorry."}, "annotators": "Ann8,Ann9",
  "annotations": {"Ann8": "1", "Ann9": "4"}, "soft_label": {"1": 0.5, "4": 0.5}, "split": "dev", "lang": "en",},
 "1907": {"text": {"context": "A job.", "response": "Okay,}"}, "annotators": "Ann8,Ann9",
  "annotations": {"Ann8": "", "Ann9": "2,3"}, "soft_label": {}, "split": "dev", "lang": "en"},
}
"""


@dataclass(frozen=True)
class FakeExport:
    """An export, and what it holds.

    Attributes:
        files: Content of each file; that of a dictionary is a ZIP archive, and that of a list is JSON or JSONL.
        votes: Votes (item, rater, label), several labels as a list in JSON.
        left_out: Words about what is left out.
        columns: Columns of the first item.
        options: Options that the export needs.
    """

    files: dict[str, Any]
    votes: list[tuple[str, ...]]
    left_out: str
    columns: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> list[Path]:
        """Write the files, and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        return [_write(folder / name, content) for name, content in self.files.items()]


def _write(path: Path, content: Any) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
    elif path.suffix == ".jsonl" and not isinstance(content, str):
        path.write_text("\n".join(map(json.dumps, content)))
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


TWO = '["Neutral", "Negative"]'
EXPORTS = {
    "label_studio_csv": FakeExport(
        {"films.csv": LABEL_STUDIO_CSV},
        [("4", "a@x.org", "Positive"), ("4", "b@x.org", TWO), ("5", "a@x.org", "Negative")],
        "1 without an answer are left out",
        {"text": "good film"},
    ),
    "label_studio_min": FakeExport(
        {"films.json": LABEL_STUDIO_MIN},
        [("4", "1", "Positive"), ("4", "2", TWO), ("5", "1", "Negative")],
        "1 without an answer are left out",
        {"text": "good film"},
    ),
    "label_studio": FakeExport(
        {"films.json": LABEL_STUDIO},
        [("4", "a@x.org", "Positive"), ("4", "10", "Negative")],
        "1 skipped, 1 gold, 1 draft, 1 without an answer are left out; ldl votes --keep skipped gold draft counts them",
        {"text": "good film", "year": "1999"},
    ),
    "prodigy": FakeExport(
        {"films.jsonl": PRODIGY},
        [("-91551573", "films-alice", "POS"), ("12", "films-alice", '["NEG", "POS"]')],
        "1 ignored, 1 rejected, 1 without an answer are left out",
        {"text": "good film"},
    ),
    "prodigy_binary": FakeExport(
        {"films.jsonl": PRODIGY_BINARY},
        [("1", "a", "accept"), ("1", "b", "reject")],
        "1 ignored are left out",
        {"text": "good"},
    ),
    "doccano": FakeExport(
        {"project.zip": DOCCANO},
        [("1", "alice", "positive"), ("2", "alice", "negative"), ("2", "bob", "negative")],
        "1 without an answer are left out",
        {"text": "Great price."},
    ),
    "argilla": FakeExport(
        {"records.json": ARGILLA},
        [("r1", "u1", "pos")],
        "1 draft are left out",
        {"text": "good film", "year": "1999"},
        {"vote_column": "sentiment"},
    ),
    "zooniverse": FakeExport(
        {"classifications.csv": ZOONIVERSE},
        [
            ("501", "not-logged-in-ab12", "Smooth"),
            ("501", "bob", "Features, or disk"),
            ("502", "bob", '["Smooth", "Star"]'),
            ("502", "alice", "Star"),
        ],
        "1 of another version of the workflow, 3 without an answer, 1 gold are left out; ldl votes --keep gold counts them",
        {"Filename": "501.png"},
    ),
    "mturk": FakeExport(
        {"batch.csv": MTURK},
        [
            ("https://x.org/1.jpg", "W1", "cat"),
            ("https://x.org/1.jpg", "W3", "dog"),
            ("https://x.org/1.jpg", "W1", '["cat", "dog"]'),
        ],
        "1 rejected, 1 without an answer are left out",
        {"image_url": "https://x.org/1.jpg"},
    ),
    "mturk_boolean": FakeExport(
        {"batch.csv": MTURK_BOOLEAN},
        [("H1", "W1", "cat"), ("H1", "W2", "dog"), ("H2", "W3", '["cat", "dog"]')],
        "1 without an answer are left out",
        {"text": "a", "page": "1"},
    ),
    "mturk_task_answers": FakeExport(
        {"batch.csv": MTURK_TASK_ANSWERS},
        [("a", "W1", "Positive"), ("a", "W2", "Negative")],
        "nothing is left out",
        {"text": "a", "HITId": "H1"},
    ),
    "appen": FakeExport(
        {"full.csv": APPEN},
        [("570", "31", "positive"), ("570", "33", "neutral"), ("572", "33", '["positive", "neutral"]')],
        "1 tainted, 1 gold are left out; ldl votes --keep tainted gold counts them",
        {"text": "good flight", "name": "Ann"},
    ),
    "toloka": FakeExport(
        {"assignments.tsv": TOLOKA},
        [("https://x.org/1", "w1", "200"), ("https://x.org/1", "w2", "404")],
        "1 rejected, 1 gold, 1 skipped are left out",
        {"url": "https://x.org/1"},
    ),
    "qualtrics": FakeExport(
        {"survey.csv": QUALTRICS},
        [("Q1_1", "R_1", "5"), ("Q1_1", "R_2", "4"), ("Q1_2", "R_1", "3")],
        "2 preview, 2 unfinished, 1 without an answer are left out",
        {"text": "Film A"},
    ),
    "google_forms": FakeExport(
        {"form.csv.zip": {"form.csv": GOOGLE_FORMS}},
        [
            ("Film A", "a@x.org", "Good"),
            ("Film A", "b@x.org", "Bad"),
            ("Film A", "row 3", "Good"),
            ("Film B", "a@x.org", "Bad"),
            ("Film B", "row 3", "Good"),
        ],
        "1 without an answer are left out",
    ),
    "lewidi_2023": FakeExport(
        {"train.json": LEWIDI_2023},
        [("1", "Ann1", "0"), ("1", "Ann2", "0"), ("1", "Ann3", "1"), ("2", "Ann1", "1"), ("2", "Ann4", "0")],
        "nothing is left out",
        {"text": "first", "split": "train", "lang": "en", "domain": "BLM"},
    ),
    "lewidi_2025": FakeExport(
        {"dev.json": LEWIDI_2025},
        [("3944", "Ann8", "1"), ("3944", "Ann9", "4"), ("1907", "Ann9", '["2", "3"]')],
        "1 without an answer are left out",
        {"context": "Steve sighs.", "response": "Sorry.", "split": "dev", "lang": "en"},
    ),
}
