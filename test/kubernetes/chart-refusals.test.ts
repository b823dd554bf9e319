import { expect, test } from '@jest/globals';
import { documentedValues, renderChart, type Values } from '../../testkit/chart.ts';
import { describeWithTools } from '../support/tools.ts';

const documented = documentedValues();

/** Values in addition to the documented ones, and why they are refused. */
const refused: readonly (readonly [string, Values, RegExp])[] = [
  ['no bucket', { s3: { bucket: '' } }, /s3\.bucket: name the bucket/],
  ['no way to the service', { ingress: { enabled: false } }, /publicUrl: name the URL/],
  ['an ingress without a host', { ingress: { enabled: true, host: '' } }, /ingress\.host: name the host/],
  ['a proxy that is not trusted', { trustedProxies: '' }, /trustedProxies: name the networks/],
  [
    'a route without a gateway',
    { httpRoute: { enabled: true, hostnames: ['a.example'] } },
    /parentRefs: name your gateway/,
  ],
  ['an unknown value', { sevret: {} }, /sevret/],
  ['an unknown value inside', { api: { replica: 3 } }, /replica/],
  ['an unknown setting', { settings: { HOLDFAST_LEASE_SECOND: 300 } }, /HOLDFAST_LEASE_SECOND/],
  ['a secret among the settings', { settings: { HOLDFAST_MASTER_KEYS: 'k1:x' } }, /HOLDFAST_MASTER_KEYS/],
  ['a setting that the chart derives', { settings: { HOLDFAST_DRAIN_SECONDS: 5 } }, /HOLDFAST_DRAIN_SECONDS/],
  ['the tag latest', { image: { tag: 'latest' } }, /tag/],
  ['a digest that is none', { image: { digest: 'sha256:abc' } }, /digest/],
  ['no limit of memory', { api: { resources: { limits: null } } }, /limits/],
  ['a port that is none', { networkPolicy: { egress: { postgres: { ports: [70_000] } } } }, /ports/],
  ['no database', { secrets: { databaseUrl: { name: '' } } }, /databaseUrl/],
  [
    'a store without a name for a secret',
    { externalSecrets: { enabled: true, store: { name: 's' }, remote: { vaultToken: { key: 'a' } } } },
    /secrets\.vaultToken\.name: needed/,
  ],
  [
    'TLS in the pods behind nginx together with pods of the web UI',
    { web: { enabled: true }, settings: { HOLDFAST_TLS_CERT_FILE: '/c', HOLDFAST_TLS_KEY_FILE: '/k' } },
    /web\.enabled: pods of web speak plain HTTP/,
  ],
];

await describeWithTools('the chart refuses', ['chart-tools'], () => {
  test.each(refused)('%s', async (_, values, reason) => {
    const { passed, errors } = await renderChart({ ...documented, ...values });
    expect(errors).toMatch(reason);
    expect(passed).toBe(false);
  });
});
