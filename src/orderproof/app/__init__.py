"""The page that explains: one file that shows, and works out for itself, why attention needs positions."""

from orderproof.app.page import page as page
from orderproof.app.page import write_page as write_page
from orderproof.app.study import bundled_study as bundled_study
from orderproof.app.study import read_study as read_study
