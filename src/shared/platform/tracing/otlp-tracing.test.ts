import { afterEach, expect, jest, test } from '@jest/globals';
import { InMemorySpanExporter } from '@opentelemetry/sdk-trace';
import { readTracingConfig } from '../config/open-telemetry.ts';
import { createTracer } from './otlp-tracing.ts';
import { currentSpan, currentTraceparent, inSpan, inTrace, setTracer } from './tracing.ts';

const callersTrace = 'a'.repeat(32);
const callersSpan = 'b'.repeat(16);

function traced(environment: Record<string, string>) {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' };
  const config = readTracingConfig({ ...endpoint, ...environment });
  if (!config) throw new Error('tracing is off');
  const exporter = new InMemorySpanExporter();
  // A closed one forgets its spans.
  exporter.shutdown = async () => {};
  const { close, tracer } = createTracer('server', config, exporter);
  setTracer(tracer);
  const sent = async () => {
    await close();
    return exporter.getFinishedSpans();
  };
  return { tracer, sent };
}

afterEach(() => setTracer(null));

test('a trace that is not sampled has ids for logs and jobs, but makes and describes no span', async () => {
  const { tracer, sent } = traced({ OTEL_TRACES_SAMPLER: 'always_off' });
  const start = jest.spyOn(tracer, 'start');
  const describe = jest.fn(() => ({ name: 'GET /' }));
  const context = tracer.begin(undefined, describe);
  expect(context).toEqual({
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
    span: null,
  });
  await inTrace(context, () =>
    inSpan('postgres select', {}, async () => {
      expect(currentSpan()).toBeNull();
      expect(currentTraceparent()).toBe(`00-${context.traceId}-${context.spanId}-00`);
    }),
  );
  expect([describe.mock.calls, start.mock.calls, await sent()]).toEqual([[], [], []]);
});

test.each([
  ['parentbased_always_off', '01', true],
  ['parentbased_always_on', '00', false],
  ['always_off', '01', false],
  ['always_on', '00', true],
])('%s, and the caller says %s', async (sampler, flags, isSampled) => {
  const { tracer, sent } = traced({ OTEL_TRACES_SAMPLER: sampler });
  const context = tracer.begin(`00-${callersTrace}-${callersSpan}-${flags}`, () => ({ name: 'GET /' }));
  expect(context.traceId).toBe(callersTrace);
  expect(context.span !== null).toBe(isSampled);
  await inTrace(context, () => inSpan('blob put', {}, async () => {}));
  context.span?.end();
  const spans = (await sent()).map((span) => [span.name, span.spanContext().traceId, span.parentSpanContext?.spanId]);
  expect(spans).toEqual(
    isSampled
      ? [
          ['blob put', callersTrace, context.spanId],
          ['GET /', callersTrace, callersSpan],
        ]
      : [],
  );
});

test.each([
  [`00-${callersTrace}-${callersSpan}-01`, true],
  [` cc-${callersTrace}-${callersSpan}-01-later `, true],
  [`00-${callersTrace}-${callersSpan}-01-later`, false],
  [`ff-${callersTrace}-${callersSpan}-01`, false],
  [`00-${callersTrace}-${'0'.repeat(16)}-01`, false],
  [`00-${callersTrace}-${callersSpan}`, false],
])('whether the trace of the header %j continues: %j', (traceparent, continues) => {
  const { tracer } = traced({});
  const { traceId } = tracer.begin(traceparent, () => ({ name: 'GET /' }));
  expect(traceId === callersTrace).toBe(continues);
});

test('a tenth of the traces is sampled, each with an id of its own', () => {
  const { tracer } = traced({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' });
  const begun = Array.from({ length: 5_000 }, () => tracer.begin(undefined, () => ({ name: 'GET /' })));
  const sampled = begun.filter(({ span }) => span !== null);
  expect(sampled.length).toBeGreaterThan(350);
  expect(sampled.length).toBeLessThan(650);
  expect(new Set(begun.map(({ traceId }) => traceId)).size).toBe(begun.length);
  expect(sampled.every(({ span, traceId }) => span?.spanContext().traceId === traceId)).toBe(true);
});
