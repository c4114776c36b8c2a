"""The interactive page: one HTML file that computes and shows why attention needs positional encodings."""

from orderproof.explain.page import render_page as render_page
from orderproof.explain.page import write_page as write_page
from orderproof.explain.study_input import bundled_study as bundled_study
from orderproof.explain.study_input import read_study as read_study
