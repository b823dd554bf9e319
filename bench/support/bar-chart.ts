export interface Bar {
  readonly series: string;
  /** The figure, as the document has it. */
  readonly text: string;
  /** Its length. */
  readonly value: number;
}

/** A dashed line at a value, which a label may name. */
export interface Mark {
  readonly label: string;
  readonly value: number;
}

export interface Group {
  readonly label: string;
  readonly bars: readonly Bar[];
  readonly mark?: Mark | undefined;
}

export interface Panel {
  readonly title: string;
  readonly groups: readonly Group[];
}

export interface Chart {
  readonly title: string;
  /** What lengths mean. */
  readonly unit: string;
  readonly panels: readonly Panel[];
}

/** A panel with its place. */
interface Placed extends Panel {
  readonly left: number;
  readonly top: number;
  readonly width: number;
}

const width = 760;
const margin = 16;
const panelGap = 32;
const barHeight = 14;
const barStep = 18;
const groupGap = 20;
const panelHead = 28;

/** Colors, in the light and the dark theme: those of others, then those of Holdfast in turn. */
const floor = ['#98a2b3', '#667085'] as const;
const peer = ['#d97706', '#e0a050'] as const;
const own = [
  ['#4b6bfb', '#8aa0ff'],
  ['#7c3aed', '#b794f6'],
] as const;
const others = new Map<string, readonly [string, string]>([
  ['null', floor],
  ['bare', floor],
  ['file', peer],
  ['procella', peer],
]);

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const round = (length: number): string => String(Math.round(length * 10) / 10);
/** At most what a text takes. */
const textWidth = (text: string): number => text.length * 6.4;

/** Draws groups of horizontal bars with their figures, as an SVG that follows the theme of its reader. */
export function barChart({ panels, title, unit }: Chart): string {
  const series = [
    ...new Set(panels.flatMap(({ groups }) => groups.flatMap(({ bars }) => bars.map((bar) => bar.series)))),
  ];
  const ownSeries = series.filter((name) => !others.has(name));
  const colorOf = (name: string): readonly [string, string] =>
    others.get(name) ?? own[ownSeries.indexOf(name) % own.length] ?? own[0];
  const columns = Math.min(panels.length, 2);
  const panelWidth = (width - 2 * margin - panelGap * (columns - 1)) / columns;
  let top = series.length > 1 ? 80 : 58;
  const placed: Placed[] = [];
  for (let first = 0; first < panels.length; first += columns) {
    const row = panels.slice(first, first + columns);
    placed.push(
      ...row.map((panel, at) => ({ ...panel, left: margin + at * (panelWidth + panelGap), top, width: panelWidth })),
    );
    top += Math.max(...row.map(heightOf)) + 12;
  }
  const theme = (at: 0 | 1): string => series.map((name, s) => `.s${s}{fill:${colorOf(name)[at]}}`).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}" role="img" aria-labelledby="title desc">
<title id="title">${escaped(title)}</title>
<desc id="desc">${escaped(`${unit}. ${panels.map(described).join(' ')}`)}</desc>
<style>text{font:12px system-ui,sans-serif;fill:#1f2430}.h{font-size:14px;font-weight:600}.p{font-weight:600}.u,.m{fill:#667085;font-size:11px}.m{fill:#b42318}.e{text-anchor:end}.n{text-anchor:middle}.v{font-size:11px}.back{fill:#fff}.l{stroke:#d0d5dd}.o{stroke:#fff;stroke-width:4}.g{stroke:#b42318;stroke-width:1.5;stroke-dasharray:4 3}${theme(0)}
@media (prefers-color-scheme:dark){text{fill:#e6e8ee}.u{fill:#98a2b3}.m{fill:#fda29b}.back{fill:#15181f}.l{stroke:#344054}.o{stroke:#15181f}.g{stroke:#fda29b}${theme(1)}}</style>
<rect class="back" width="${width}" height="${top}" rx="8"/>
<text class="h" x="${margin}" y="28">${escaped(title)}</text>
<text class="u" x="${margin}" y="46">${escaped(unit)}</text>
${[...(series.length > 1 ? legend(series) : []), ...placed.map((panel) => drawPanel(panel, series))].join('\n')}
</svg>
`;
}

function legend(series: readonly string[]): string[] {
  let x = margin;
  return series.map((name, s) => {
    const drawn = `<rect class="s${s}" x="${round(x)}" y="58" width="10" height="10" rx="2"/><text x="${round(x + 16)}" y="67">${escaped(name)}</text>`;
    x += 40 + name.length * 7;
    return drawn;
  });
}

const headOf = ({ title }: Panel): number => (title === '' ? 0 : panelHead);
const heightOf = (panel: Panel): number =>
  headOf(panel) + panel.groups.reduce((sum, { bars }) => sum + bars.length * barStep + groupGap, 0);

function described({ groups, title }: Panel): string {
  const texts = groups.map(({ bars, label, mark }) => {
    const figures = bars.map(({ series, text }) => (series === '' ? text : `${series} ${text}`));
    return `${label}: ${[...figures, ...(mark?.label ? [mark.label] : [])].join(', ')}`;
  });
  return `${title === '' ? '' : `${title}: `}${texts.join('; ')}.`;
}

function drawPanel(panel: Placed, series: readonly string[]): string {
  const { groups, left, title, top, width: panelWidth } = panel;
  const bars = groups.flatMap((group) => group.bars);
  const labelWidth = Math.max(...groups.map(({ label }) => textWidth(label))) + 8;
  const valueWidth = Math.max(...bars.map(({ text }) => textWidth(text))) + 8;
  const most = Math.max(...bars.map(({ value }) => value), ...groups.map(({ mark }) => mark?.value ?? 0));
  const start = left + labelWidth;
  const scale = (panelWidth - labelWidth - valueWidth) / most;
  /** Where the text of a bar begins: after the bar, and after a line that would cross it. */
  const textStart = ({ text, value }: Bar, mark: Mark | undefined): number => {
    const [x, line] = [start + value * scale + 5, start + (mark?.value ?? 0) * scale];
    return x < line + 5 && line < x + textWidth(text) ? line + 5 : x;
  };
  const drawn: string[] = [];
  const marks: { mark: Mark; from: number; to: number }[] = [];
  let y = top + headOf(panel);
  const first = y;
  for (const { bars: own, label, mark } of groups) {
    const bottom = y + own.length * barStep;
    drawn.push(`<text class="e" x="${round(start - 8)}" y="${round((y + bottom) / 2 + 2)}">${escaped(label)}</text>`);
    for (const [at, bar] of own.entries()) {
      const barTop = y + at * barStep;
      drawn.push(
        `<rect class="s${series.indexOf(bar.series)}" x="${round(start)}" y="${barTop}" width="${round(Math.max(bar.value * scale, 1))}" height="${barHeight}" rx="2"/>`,
        `<text class="v" x="${round(textStart(bar, mark))}" y="${barTop + 11}">${escaped(bar.text)}</text>`,
      );
    }
    const last = marks.at(-1);
    if (mark && last?.mark.label === mark.label && last.mark.label !== '' && last.to === y - groupGap) last.to = bottom;
    else if (mark) marks.push({ mark, from: y, to: bottom });
    y = bottom + groupGap;
  }
  for (const { from, mark, to } of marks) {
    const x = start + mark.value * scale;
    const line = `x1="${round(x)}" x2="${round(x)}" y1="${from - 4}" y2="${to}"/>`;
    drawn.push(`<line class="o" ${line}<line class="g" ${line}`);
    const half = textWidth(mark.label) / 2;
    const middle = Math.max(start + half, Math.min(x, left + panelWidth - half));
    if (mark.label !== '')
      drawn.push(`<text class="m n" x="${round(middle)}" y="${to + 11}">${escaped(mark.label)}</text>`);
  }
  return [
    ...(title === '' ? [] : [`<text class="p" x="${left}" y="${top + 12}">${escaped(title)}</text>`]),
    `<line class="l" x1="${round(start)}" x2="${round(start)}" y1="${first - 4}" y2="${y - groupGap}"/>`,
    ...drawn,
  ].join('\n');
}
