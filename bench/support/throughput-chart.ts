import { type CpuSeconds, type ProcessKind, processKinds } from './cluster-usage.ts';

/** What one configuration of a cluster has reached. */
export interface Bar {
  readonly label: string;
  readonly perSecond: number;
  readonly cores: CpuSeconds;
}

export interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const width = 1080;
const panelGap = 60;
const margin = 16;
const top = 84;
const barsHeight = 150;
const coresTop = top + barsHeight + 70;
const coresHeight = 150;
const height = coresTop + coresHeight + 44;

/** Colors, in the light and the dark theme. */
const colors: Readonly<Record<ProcessKind, readonly [string, string]>> = {
  API: ['#4b6bfb', '#8aa0ff'],
  workers: ['#7c3aed', '#b794f6'],
  Postgres: ['#1f8a65', '#52c49a'],
  Redis: ['#c2410c', '#f0905f'],
  S3: ['#a16207', '#e0b450'],
  proxy: ['#0e7490', '#67c7dd'],
  generator: ['#98a2b3', '#667085'],
};

/** Calls per second of series of clusters, and the cores that each kind of process used for them. */
export function throughputChart(panels: readonly Panel[]): string {
  const panelWidth = (width - 2 * margin - panelGap * (panels.length - 1)) / panels.length;
  const drawn = panels.map((panel, at) => drawPanel(panel, margin + at * (panelWidth + panelGap), panelWidth));
  const theme = (at: 0 | 1): string => processKinds.map((kind, k) => `.k${k}{fill:${colors[kind][at]}}`).join('');
  const legend = processKinds.map(
    (kind, at) =>
      `<rect class="k${at}" x="${margin + at * 100}" y="14" width="10" height="10" rx="2"/><text x="${margin + 16 + at * 100}" y="23">${kind}</text>`,
  );
  const summary = panels.map(
    ({ bars, title }) =>
      `${title}: ${bars.map(({ label, perSecond }) => `${label} ${perSecond.toFixed(0)}`).join(', ')}`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Calls per second. ${summary.join('. ')}">
<style>text{font:12px system-ui,sans-serif;fill:#1f2430}.h{font-weight:600}.n{text-anchor:middle}.s{fill:#667085;font-size:11px}.back{fill:#fff}.b{fill:#344054}.l{stroke:#d0d5dd}${theme(0)}
@media (prefers-color-scheme:dark){text{fill:#e6e8ee}.s{fill:#98a2b3}.back{fill:#15181f}.b{fill:#cbd2e0}.l{stroke:#344054}${theme(1)}}</style>
<rect class="back" width="${width}" height="${height}" rx="8"/>
${[...legend, ...drawn].join('\n')}
</svg>
`;
}

function drawPanel({ bars, title }: Panel, left: number, panelWidth: number): string {
  const slot = panelWidth / Math.max(bars.length, 1);
  const barWidth = Math.min(56, slot * 0.6);
  const most = Math.max(...bars.map(({ perSecond }) => perSecond), 1);
  const coresOf = ({ cores }: Bar): number => processKinds.reduce((sum, kind) => sum + (cores[kind] || 0), 0);
  const mostCores = Math.max(...bars.map(coresOf), 0.1);
  const line = (y: number): string => `<line class="l" x1="${left}" x2="${left + panelWidth}" y1="${y}" y2="${y}"/>`;
  const columns = bars.map((bar, at) => {
    const middle = left + slot * (at + 0.5);
    const x = (middle - barWidth / 2).toFixed(1);
    const tall = (bar.perSecond / most) * barsHeight;
    const text = (y: number, label: string, kind = 'n'): string =>
      `<text class="${kind}" x="${middle.toFixed(1)}" y="${y.toFixed(1)}">${label}</text>`;
    let y = coresTop + coresHeight;
    const stack = processKinds.map((kind, k) => {
      const part = ((bar.cores[kind] || 0) / mostCores) * coresHeight;
      y -= part;
      return `<rect class="k${k}" x="${x}" y="${y.toFixed(1)}" width="${barWidth.toFixed(1)}" height="${part.toFixed(1)}"/>`;
    });
    return [
      `<rect class="b" x="${x}" y="${(top + barsHeight - tall).toFixed(1)}" width="${barWidth.toFixed(1)}" height="${tall.toFixed(1)}"/>`,
      text(top + barsHeight - tall - 5, bar.perSecond.toFixed(bar.perSecond < 10 ? 1 : 0)),
      text(top + barsHeight + 16, bar.label, 'n s'),
      ...stack,
      text(y - 5, coresOf(bar).toFixed(2)),
      text(coresTop + coresHeight + 16, bar.label, 'n s'),
    ].join('');
  });
  return [
    `<text class="h" x="${left}" y="52">${title}</text>`,
    `<text class="s" x="${left}" y="68">calls per second</text>`,
    `<text class="s" x="${left}" y="${coresTop - 22}">cores used</text>`,
    line(top + barsHeight),
    line(coresTop + coresHeight),
    ...columns,
  ].join('\n');
}
