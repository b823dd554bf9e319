import { expect, test } from '@jest/globals';
import { readTracingConfig } from './open-telemetry.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' };
const all = {
  protocol: 'http/protobuf',
  sampler: 'always_on',
  isParentBased: true,
  ratio: 1,
  batches: {},
  warnings: [],
};

test.each([
  ['no endpoint', {}],
  ['an empty endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
  ['a disabled SDK', { ...endpoint, OTEL_SDK_DISABLED: 'True' }],
  ['no exporter', { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
])('%s turns tracing off', (_what, environment) => {
  expect(readTracingConfig(environment)).toBeNull();
});

test.each([
  ['an endpoint', endpoint, all],
  ['an endpoint of traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://localhost:4318/v1/traces' }, all],
  ['JSON', { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, { ...all, protocol: 'http/json' }],
  [
    'a tenth of the traces',
    { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' },
    { ...all, sampler: 'traceidratio', isParentBased: false, ratio: 0.1 },
  ],
  [
    'a sampler below the decision of the caller',
    { ...endpoint, OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
    { ...all, sampler: 'always_off' },
  ],
  [
    'limits of batches',
    { ...endpoint, OTEL_BSP_SCHEDULE_DELAY: '200', OTEL_BSP_MAX_QUEUE_SIZE: '100' },
    { ...all, batches: { scheduledDelayMillis: 200, maxQueueSize: 100 } },
  ],
])('%s turns it on', (_what, environment, config) => {
  expect(readTracingConfig(environment)).toEqual(config);
});

test.each([
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '7'],
  ['OTEL_BSP_SCHEDULE_DELAY', 'soon'],
])('a wrong %s gets a warning and the default', (name, value) => {
  const sampler = name === 'OTEL_TRACES_SAMPLER_ARG' ? { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' } : {};
  const config = readTracingConfig({ ...endpoint, ...sampler, [name]: value });
  expect(config).toMatchObject({ protocol: 'http/protobuf', isParentBased: true, ratio: 1, batches: {} });
  expect(config?.warnings).toEqual([expect.stringContaining(name)]);
});
