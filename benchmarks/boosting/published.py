"""The printed figures of Babenko et al. 2008, Section 3: means over ten trials, without deviations."""

from __future__ import annotations

ALIGNMENT = {"digits": {"MIL-Boost": 1.40, "AdaBoost": 3.08}, "faces": {"MIL-Boost": 5.07, "AdaBoost": 5.97}}
"""Alignment errors in pixels; faces are LFW's."""
GROUPING = {
    "digits": {"NOR": 0.83, "ISR": 0.89, "GM": 0.87, "LSE": 0.87},
    "faces": {"NOR": 0.81, "ISR": 0.84, "GM": 0.83, "LSE": 0.88},
}
"""Shares of positives in the group of their kind; faces are LFW's."""
