import pytest


@pytest.fixture
def figures(monkeypatch):
    """A function that writes a page; returns the figures that its module has saved."""

    def figures(module, write):
        saved, save = [], module.save_figure

        def save_figure(figure, path):
            saved.append(figure)
            save(figure, path)

        monkeypatch.setattr(module, "save_figure", save_figure)
        page = write()
        assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        return saved

    return figures
