"""A run in marimo, which has no magics: its widget, and its static view, which a cell that ends with a run shows."""

import marimo

app = marimo.App()


@app.cell
def start():
    from cutegen_lab.core.run import RunSettings
    from cutegen_lab.notebook.run import NotebookRun
    from cutegen_lab.notebook.widget import RefineWidget
    from cutegen_lab.problems import read_text
    from cutegen_lab.session import Session

    problem = read_text("def reference(x):  # x: f32[256, 1024]\n    return torch.softmax(x, dim=-1)\n", name="softmax")
    settings = RunSettings(device="emulator", provider="templates:vec=1,threads_per_row=32,rows_per_block=1,loads=1")
    run = NotebookRun(Session.open().start(problem, settings))
    return RefineWidget, run


@app.cell
def widget(RefineWidget, run):
    RefineWidget(run)
    return


@app.cell
def static_view(run):
    run  # noqa: B018 (marimo shows the last expression)
    return


if __name__ == "__main__":
    app.run()
