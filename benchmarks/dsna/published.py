"""The printed figures of Huang, Loy & Tang 2016."""

from __future__ import annotations

TABLE1_AGE = {
    "RF": 5.28,
    "RF+SMOTE": 5.39,
    "RED-SVM": 5.24,
    "CS-RF": 4.81,
    "CS-RF+AH": 4.89,
    "CS-RF+DSNA": 4.10,
}
"""MAE on FG-NET."""
TABLE1_POSE = {
    "RF": 6.41,
    "RF+SMOTE": 6.65,
    "RED-SVM": 6.53,
    "CS-RF": 4.02,
    "CS-RF+AH": 4.28,
    "CS-RF+DSNA": 3.54,
}
"""Mean MAE of both angles on Pointing'04."""
TABLE1_EDGE = {"RF": 0.75, "RF+SMOTE": 0.75, "WRF": 0.75, "CS-RF": 0.76, "CS-RF+AH": 0.76, "CS-RF+DSNA": 0.78}
"""ODS on BSDS500. Table IV has .77 of the last."""

TABLE2_FGNET = {
    "RUN": 5.33,
    "RED-SVM": 5.24,
    "MTWGP": 4.83,
    "BIF": 4.77,
    "CPNN": 4.76,
    "CSOHR": 4.70,
    "CA-SVR": 4.67,
    "Choi et al.": 4.66,
    "MidFea-NS": 4.62,
    "Han et al.": 4.60,
    "RealAdaBoost": 4.49,
    "OHRank": 4.48,
    "lsRCA": 4.38,
    "CS-RF+DSNA": 4.10,
}
"""MAE."""
TABLE2_MORPH = 3.54

TABLE3 = {"yaw": 5.04, "pitch": 2.03, "mean": 3.54}
"""MAE of CS-RF+DSNA on Pointing'04."""

TABLE4_SE = {"ods": 0.75, "ois": 0.77, "ap": 0.80}
TABLE4_DSNA = {"ods": 0.77, "ois": 0.79, "ap": 0.81}
"""On BSDS500's test part."""

TABLE5 = {"NYU/NYU": (0.62, 0.63, 0.60), "BSDS/NYU": (0.57, 0.58, 0.51)}
"""ODS, OIS and AP of CS-SE+DSNA, by what it is trained and tested on."""
