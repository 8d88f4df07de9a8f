"""The cards' style sheet.

Every card brings it along, because Colab shows each output in a page of its own. Text
keeps the page's color and tints are mixed into its background, so light and dark need
one set. The last rule undoes the white box that the book's theme puts behind HTML in
the dark. This module does not know what stands in a card.
"""

STYLE = """<style>
.exercise-card{--mark:#57606a;border-left:4px solid var(--mark);margin:.5em 0;
padding:.2em .9em;color:inherit;background:none;font-family:inherit;line-height:1.5}
.exercise-card.pass,.exercise-card .pass{--mark:#15803d}
.exercise-card.fail,.exercise-card .fail{--mark:#c5281c}
.exercise-card ul{list-style:none;margin:.4em 0;padding:0}
.exercise-card li{margin:0;padding-left:1.5em;text-indent:-1.5em}
.exercise-card li>span{display:inline-block;text-indent:0;width:1.5em}
.exercise-card .steps .open{opacity:.75}
.exercise-card .badge{background:var(--mark);border-radius:50%;color:#fff;
display:inline-block;font:bold .75em/1.5 sans-serif;height:1.5em;margin-right:.5em;
text-align:center;text-indent:0;vertical-align:.1em;width:1.5em}
.exercise-card details,.exercise-card details>*{background:none;border:0;
margin:0;padding:0}
.exercise-card .said,.exercise-card pre{background:color-mix(in srgb,var(--mark) 12%,
transparent);border:0;border-radius:4px;box-shadow:none;color:inherit;margin:.4em 0;
overflow-wrap:anywhere;padding:.5em .7em;white-space:pre-wrap}
.exercise-card pre{font-size:.85em}
.exercise-card code{background:none;border:0;color:inherit;padding:0}
.exercise-card summary{cursor:pointer;line-height:24px}
.exercise-card details>div{padding:0 0 .4em 1.1em}
.exercise-card progress{accent-color:#15803d;max-width:60%;width:12em}
html[data-theme=dark] .bd-content div.cell_output .text_html:has(.exercise-card){
background:none!important;color:inherit!important;padding:0!important}
</style>"""
