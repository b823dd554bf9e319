import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { startCluster } from '../testkit/cluster.ts';
import { type ReceivedSpan, startOtlpReceiver, tracedSettings } from '../testkit/otlp-receiver.ts';
import { until } from '../testkit/until.ts';

// `bin/node scripts/trace-picture.ts`: draws docs/images/trace.svg, the trace of an import through an API replica, Redis, a worker
// and S3, from a cluster that it starts.

const width = 1080;
const rowHeight = 18;
const labelWidth = 360;
const margin = 16;
const top = 52;

/** Colors, in the light and the dark theme. */
const kinds = [
  { name: 'API', pattern: /^(GET|POST|wait for)/, light: '#4b6bfb', dark: '#8aa0ff' },
  { name: 'Postgres', pattern: /^postgres/, light: '#1f8a65', dark: '#52c49a' },
  { name: 'Redis', pattern: /^redis/, light: '#c2410c', dark: '#f0905f' },
  { name: 'Worker', pattern: /^job/, light: '#7c3aed', dark: '#b794f6' },
  { name: 'Blob store', pattern: /^(blob|s3)/i, light: '#a16207', dark: '#e0b450' },
] as const;

const start = (span: ReceivedSpan): number => Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000;
const end = (span: ReceivedSpan): number => Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000;
const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

/** Spans with their depths: parents before their children, by time. */
function inOrder(spans: readonly ReceivedSpan[], parent: string, depth = 0): [ReceivedSpan, number][] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .sort((a, b) => start(a) - start(b))
    .flatMap((span) => [[span, depth] as [ReceivedSpan, number], ...inOrder(spans, span.spanId, depth + 1)]);
}

function draw(rows: readonly (readonly [ReceivedSpan, number])[]): string {
  const [root] = rows[0] as [ReceivedSpan, number];
  const total = Math.max(...rows.map(([span]) => end(span))) - start(root);
  const scale = (width - labelWidth - margin - 70) / total;
  const height = top + rows.length * rowHeight + margin;
  const legend = kinds.map(
    ({ name }, at) =>
      `<rect class="k${at}" x="${labelWidth + at * 110}" y="14" width="10" height="10" rx="2"/><text x="${labelWidth + 16 + at * 110}" y="23">${name}</text>`,
  );
  const bars = rows.map(([span, depth], at) => {
    const y = top + at * rowHeight;
    const x = labelWidth + (start(span) - start(root)) * scale;
    const length = Math.max((end(span) - start(span)) * scale, 2);
    const kind = kinds.findIndex(({ pattern }) => pattern.test(span.name));
    const label = span.name.replace('/api/stacks/:organization/:project/:stack', '…');
    return [
      `<text x="${margin + depth * 14}" y="${y + 12}">${escaped(label)}</text>`,
      `<rect class="k${kind}" x="${x.toFixed(1)}" y="${y + 2}" width="${length.toFixed(1)}" height="12" rx="2"/>`,
      `<text class="ms" x="${(x + length + 5).toFixed(1)}" y="${y + 12}">${(end(span) - start(span)).toFixed(1)} ms</text>`,
    ].join('');
  });
  const colors = (theme: 'light' | 'dark'): string => kinds.map((kind, at) => `.k${at}{fill:${kind[theme]}}`).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A trace of an import: ${rows.length} spans in ${total.toFixed(0)} ms">
<style>text{font:12px system-ui,sans-serif;fill:#1f2430}.ms{fill:#667085;font-size:11px}.back{fill:#fff}${colors('light')}
@media (prefers-color-scheme:dark){text{fill:#e6e8ee}.ms{fill:#98a2b3}.back{fill:#15181f}${colors('dark')}}</style>
<rect class="back" width="${width}" height="${height}" rx="8"/>
<text x="${margin}" y="23">${total.toFixed(0)} ms, ${rows.length} spans</text>
${[...legend, ...bars].join('\n')}
</svg>
`;
}

const receiver = await startOtlpReceiver();
const cluster = await startCluster({ apis: 1, workers: 1, settings: tracedSettings(receiver) });
try {
  const base = `/api/stacks/${cluster.organization}/traced`;
  const call = async (route: string, body: unknown, traceparent = ''): Promise<void> => {
    const response = await fetch(`${cluster.url}${route}`, {
      method: 'POST',
      headers: {
        accept: 'application/vnd.pulumi+9',
        authorization: `token ${cluster.token}`,
        'content-type': 'application/json',
        ...(traceparent === '' ? {} : { traceparent }),
      },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
  };
  const urn = 'urn:pulumi:dev::traced::pulumi:pulumi:Stack::traced-dev';
  const outputs = { large: randomBytes(200_000).toString('hex') };
  const deployment = {
    version: 3,
    deployment: {
      manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
      resources: [{ urn, type: 'pulumi:pulumi:Stack', custom: false, outputs }],
    },
  };
  await call(base, { stackName: 'dev' });
  // The first imports warm up connections and code.
  for (let warm = 0; warm < 20; warm++) await call(`${base}/dev/import`, deployment);
  const [traceId, parent] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  await call(`${base}/dev/import`, deployment, `00-${traceId}-${parent}-01`);
  await until(
    async () =>
      [/^POST /, /^job /].every((pattern) => receiver.ofTrace(traceId).some(({ name }) => pattern.test(name))),
    'the spans of both processes',
  );
  const file = path.join(import.meta.dirname, '../docs/images/trace.svg');
  writeFileSync(file, draw(inOrder(receiver.ofTrace(traceId), parent)));
  console.log(file);
} finally {
  await cluster.stop();
  await receiver.close();
}
