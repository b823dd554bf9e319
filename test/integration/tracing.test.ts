import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Cluster, startCluster } from '../../testkit/cluster.ts';
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
  tracedSettings,
} from '../../testkit/otlp-receiver.ts';
import { tuned } from '../../testkit/tuned.ts';
import { until } from '../../testkit/until.ts';

// A request is one trace through the API, Postgres, Redis, a worker and S3, in processes of their own. The receiver speaks OTLP over HTTP.

const secret = `planted-${randomBytes(8).toString('hex')}`;
let cluster: Cluster;
let receiver: OtlpReceiver;

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  cluster = await startCluster({
    ...{ apis: 1, workers: 1, settings: tracedSettings(receiver) },
    workerSettings: () => ({ OTEL_TRACES_SAMPLER: 'parentbased_always_on', ...tuned({ sweepSeconds: 1 }) }),
  });
}, 240_000);

afterAll(async () => {
  await cluster?.stop();
  await receiver?.close();
});

async function call(
  method: string,
  path: string,
  {
    body,
    headers = {},
    token = cluster.token,
  }: {
    body?: unknown;
    headers?: Record<string, string>;
    token?: string;
  } = {},
): Promise<Response> {
  const auth = token.startsWith('update-token') ? token : `token ${token}`;
  return fetch(`${cluster.url}${path}`, {
    method,
    headers: {
      accept: 'application/vnd.pulumi+9',
      'content-type': 'application/json',
      authorization: auth,
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const traceId = randomBytes(16).toString('hex');
const ofTrace = (id: string): ReceivedSpan[] => receiver.ofTrace(id);

test('a large write is one trace in both processes, and its log lines name it', async () => {
  const stack = `/api/stacks/${cluster.organization}/traced/dev`;
  await call('POST', `/api/stacks/${cluster.organization}/traced`, { body: { stackName: 'dev' } });
  const deployment = {
    version: 3,
    deployment: {
      manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
      resources: [
        {
          urn: 'urn:pulumi:dev::traced::pulumi:pulumi:Stack::traced-dev',
          type: 'pulumi:pulumi:Stack',
          custom: false,
          outputs: { secret, large: randomBytes(200_000).toString('hex') },
        },
      ],
    },
  };
  const parent = randomBytes(8).toString('hex');
  const response = await call('POST', `${stack}/import?note=${secret}`, {
    body: deployment,
    headers: { traceparent: `00-${traceId}-${parent}-01` },
  });
  expect(response.status).toBe(200);
  const names = (): string[] => ofTrace(traceId).map(({ name }) => name);
  await until(
    async () => names().some((name) => name.startsWith('job ')) && names().some((name) => name.startsWith('POST ')),
    'the spans of both processes',
  );
  const all = ofTrace(traceId);
  expect(new Set(all.map(({ service }) => service))).toEqual(new Set(['holdfast-api', 'holdfast-worker']));
  const root = all.find(({ name }) => name.startsWith('POST '));
  expect(root).toMatchObject({ name: 'POST /api/stacks/:organization/:project/:stack/import', parentSpanId: parent });
  for (const pattern of [
    /^postgres updates\.insertEnded$/,
    /^postgres commit$/,
    /^redis add job$/,
    /^wait for job /,
    /^blob put$/,
    /^s3 /,
  ])
    expect(names()).toContainEqual(expect.stringMatching(pattern));
  // Each statement has its name.
  expect(names().filter((name) => /^postgres (select|insert|update|delete|with)$/.test(name))).toEqual([]);
  // The names stand for the texts, which would be most of what is sent.
  const named = all.filter(({ name }) => /^postgres \w+\.\w+$/.test(name));
  expect(named.filter(({ text }) => text.includes('db.query.text'))).toEqual([]);
  // Each span hangs below another one of the trace.
  const ids = new Set([parent, ...all.map(({ spanId }) => spanId)]);
  expect(all.filter(({ parentSpanId }) => !ids.has(parentSpanId ?? ''))).toEqual([]);
  expect(all.some(({ text }) => text.includes(secret) || text.includes(cluster.token))).toBe(false);
  for (const part of [cluster.apis[0], cluster.workers[0]]) expect(part?.log).toContain(`"trace_id":"${traceId}"`);
});

test('a request that its caller does not sample, or whose header is wrong, is not sent', async () => {
  const unsampled = randomBytes(16).toString('hex');
  const before = receiver.spans.length;
  for (const traceparent of [
    `00-${unsampled}-${randomBytes(8).toString('hex')}-00`,
    'wrong',
    `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`,
  ])
    expect((await call('GET', '/api/user', { headers: { traceparent } })).status).toBe(200);
  const marker = randomBytes(16).toString('hex');
  await call('GET', '/api/user', { headers: { traceparent: `00-${marker}-${randomBytes(8).toString('hex')}-01` } });
  await until(async () => ofTrace(marker).some(({ name }) => name === 'GET /api/user'), 'the spans of a later request');
  const others = receiver.spans.slice(before).filter(({ service }) => service === 'holdfast-api');
  expect(others.filter((span) => span.traceId !== marker && span.traceId !== traceId)).toEqual([]);
});

test('background tasks and deliveries of webhooks begin traces of their own', async () => {
  const webhook = { name: 'traced', displayName: 'traced', payloadUrl: 'https://192.0.2.1/hook', active: true };
  const made = await call('POST', `/api/orgs/${cluster.organization}/hooks`, {
    body: { organizationName: cluster.organization, ...webhook },
  });
  expect(made.status).toBe(200);
  await call('POST', `/api/stacks/${cluster.organization}/traced`, { body: { stackName: 'hooked' } });
  for (const name of ['task expire-leases', 'webhook delivery']) {
    const rootOf = () => receiver.spans.find((span) => span.name === name);
    await until(async () => rootOf() !== undefined, `the span of a ${name}`);
    expect(rootOf()).toMatchObject({ service: 'holdfast-worker' });
    expect(rootOf()?.parentSpanId ?? '').toBe('');
    const below = () => ofTrace(rootOf()?.traceId ?? '').filter((span) => span.name.startsWith('postgres '));
    // A task may run millions of statements.
    if (name.startsWith('task ')) expect(below()).toEqual([]);
    else await until(async () => below().length > 0, 'its statements');
  }
  expect(receiver.spans.some(({ text }) => text.includes('192.0.2.1'))).toBe(false);
});

test('a delivery that a call waits for belongs to the trace of the call', async () => {
  const pinged = randomBytes(16).toString('hex');
  const ping = `/api/orgs/${cluster.organization}/hooks/traced/ping`;
  const headers = { traceparent: `00-${pinged}-${randomBytes(8).toString('hex')}-01` };
  expect((await call('POST', ping, { body: {}, headers })).status).toBe(200);
  const spanOf = (start: string) => ofTrace(pinged).find(({ name }) => name.startsWith(start));
  await until(async () => spanOf('POST ') !== undefined, 'the spans of the call');
  expect(spanOf('webhook delivery')).toMatchObject({ service: 'holdfast-api', parentSpanId: spanOf('POST ')?.spanId });
});

test('metrics have the trace of a slow request as an exemplar', async () => {
  const url = cluster.apiManagementUrls[0] as string;
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get('content-type')).toContain('application/openmetrics-text');
  const text = await response.text();
  expect(text).toMatch(/^holdfast_http_request_seconds_bucket\{.*\} \d+ # \{.*trace_id="[0-9a-f]{32}"/m);
  expect(text).toMatch(/# EOF\s*$/);
});

test('writes go on while the receiver is away', async () => {
  await receiver.close();
  const traceparent = `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
  const response = await call('POST', `/api/stacks/${cluster.organization}/traced`, {
    body: { stackName: 'later' },
    headers: { traceparent },
  });
  expect(response.status).toBe(200);
  await until(
    async () => cluster.apis[0]?.log.includes('spans could not be sent') === true,
    'the API says that spans could not be sent',
  );
});
