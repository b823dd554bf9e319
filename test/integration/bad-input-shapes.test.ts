import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { bodyRoutes } from '../support/body-routes.ts';
import { allRouteNames, baseDocument, routeNames } from '../support/every-body-route.ts';
import { expectNothingChanged, expectRejection } from '../support/wire.ts';

const routes = bodyRoutes();
const { send } = routes;

/** Deployments that the CLI could not load, and that no journal could be replayed over. */
const wrongDeployments = [
  '{"resources":[1]}',
  '{"resources":[{},null]}',
  '{"resources":[[]]}',
  '{"resources":["urn"]}',
  '{"pending_operations":{}}',
  '{"pending_operations":[1]}',
  '{"pending_operations":[null]}',
  '{"manifest":"x"}',
  '{"manifest":[]}',
  '{"secrets_providers":"passphrase"}',
  '{"metadata":1}',
];

/** Bodies of the wrong shape, by route. */
const wrongShapes: Record<string, readonly string[]> = {
  checkpoint: [
    'null',
    '[]',
    '"x"',
    '3',
    '{}',
    '{"version":3}',
    '{"version":3,"deployment":null}',
    '{"version":3,"deployment":[]}',
    '{"version":3,"deployment":"{}"}',
    '{"version":3,"deployment":{"resources":{}}}',
    '{"version":3,"deployment":{"resources":"x"}}',
    '{"deployment":{}}',
    '{"version":0,"deployment":{}}',
    '{"version":"3","deployment":{}}',
    '{"version":3.5,"deployment":{}}',
    '{"version":3.0,"deployment":{}}',
    '{"version":-3,"deployment":{}}',
    '{"version":5,"deployment":{}}',
    '{"version":1e400,"deployment":{}}',
    '{"version":[3],"deployment":{}}',
    '{"version":4,"features":"views","deployment":{}}',
    ...wrongDeployments.map((deployment) => `{"version":3,"deployment":${deployment}}`),
  ],
  checkpointverbatim: [
    'null',
    '[]',
    '{}',
    `{"version":3,"untypedDeployment":${baseDocument}}`,
    '{"version":3,"sequenceNumber":5}',
    '{"version":3,"untypedDeployment":null,"sequenceNumber":5}',
    '{"version":3,"untypedDeployment":"{}","sequenceNumber":5}',
    '{"version":3,"untypedDeployment":[],"sequenceNumber":5}',
    '{"version":3,"untypedDeployment":{"version":3},"sequenceNumber":5}',
    '{"version":3,"untypedDeployment":{"version":9,"deployment":{}},"sequenceNumber":5}',
    '{"version":3,"untypedDeployment":{"version":4,"features":{},"deployment":{}},"sequenceNumber":5}',
    ...wrongDeployments.map(
      (deployment) => `{"version":3,"untypedDeployment":{"version":3,"deployment":${deployment}},"sequenceNumber":5}`,
    ),
    ...['"5"', '-1', '5.5', '2147483648', '9007199254740993', '1e21', '1e400', 'null', '{}', '[5]', 'true'].map(
      (number) => `{"version":3,"untypedDeployment":${baseDocument},"sequenceNumber":${number}}`,
    ),
  ],
  checkpointdelta: [
    'null',
    '[]',
    '{}',
    ...[
      ['checkpointHash', 'null'],
      ['checkpointHash', '"abc"'],
      ['checkpointHash', '17'],
      ['version', '"3"'],
      ['version', '-1'],
      ['sequenceNumber', 'null'],
      ['sequenceNumber', '"2"'],
      ['sequenceNumber', '-2'],
      ['sequenceNumber', '2147483648'],
      ['sequenceNumber', '9007199254740993'],
      ['sequenceNumber', '1e21'],
      ['deploymentDelta', 'null'],
      ['deploymentDelta', '{}'],
      ['deploymentDelta', '[1]'],
      ['deploymentDelta', '[{}]'],
      ['deploymentDelta', '[{"Span":{"start":{"offset":-1},"end":{"offset":0}},"NewText":""}]'],
      ['deploymentDelta', '[{"Span":{"start":{"offset":5},"end":{"offset":1}},"NewText":""}]'],
      ['deploymentDelta', '[{"Span":{"start":{"offset":1.5},"end":{"offset":2}},"NewText":""}]'],
      ['deploymentDelta', '[{"Span":{"start":{"offset":0},"end":{"offset":1e21}},"NewText":""}]'],
      ['deploymentDelta', '[{"Span":{"start":{"offset":0},"end":{"offset":99999999}},"NewText":""}]'],
      ['deploymentDelta', '[{"Span":{"start":{"offset":0},"end":{"offset":1}},"NewText":1}]'],
      [
        'deploymentDelta',
        '[{"Span":{"start":{"offset":9007199254740993},"end":{"offset":9007199254740993}},"NewText":"x"}]',
      ],
    ].map(([member, value]) => {
      const members: Record<string, string> = {
        version: '3',
        // The correct hash of a delta without edits, so that a rejection is caused by the invalid member.
        checkpointHash: JSON.stringify(createHash('sha256').update(baseDocument).digest('hex')),
        sequenceNumber: '2',
        deploymentDelta: '[]',
        [member as string]: value as string,
      };
      return `{${Object.entries(members)
        .map(([key, text]) => `"${key}":${text}`)
        .join(',')}}`;
    }),
  ],
  journalentries: [
    'null',
    '[]',
    '{}',
    '{"entries":null}',
    '{"entries":{}}',
    '{"entries":"x"}',
    '{"entries":{"0":{"sequenceID":1}}}',
    '{"entries":[1]}',
    '{"entries":[null]}',
    '{"entries":[[]]}',
    '{"entries":[{}]}',
    '{"entries":[{"sequenceID":1}]}',
    '{"entries":[{"sequenceID":1,"kind":null}]}',
    '{"entries":[{"sequenceID":1,"kind":"0"}]}',
    ...['0', '-1', '1.5', '1.0', '1e2', '"1"', 'null', '[1]', '9007199254740992', '1e400'].map(
      (id) => `{"entries":[{"sequenceID":1,"kind":0},{"sequenceID":${id},"kind":0}]}`,
    ),
  ],
  'events/batch': [
    'null',
    '[]',
    '{}',
    '{"events":null}',
    '{"events":{}}',
    '{"events":"x"}',
    '{"events":{"0":{"sequence":1}}}',
    '{"events":[1]}',
    '{"events":[null]}',
    '{"events":[[]]}',
    '{"events":[{}]}',
    '{"events":[{"timestamp":1}]}',
    ...['"1"', 'null', 'true', '[1]', '{}', '"2026-01-01T00:00:00Z"'].map(
      (timestamp) => `{"events":[{"sequence":1,"timestamp":1},{"sequence":2,"timestamp":${timestamp}}]}`,
    ),
    ...['-1', '1.5', '1e2', '"1"', 'null', '[1]', '9007199254740992', '1e400'].map(
      (sequence) => `{"events":[{"sequence":1},{"sequence":${sequence}}]}`,
    ),
  ],
  import: [
    'null',
    '[]',
    '{}',
    '{"version":3}',
    '{"deployment":{}}',
    '{"version":3,"deployment":[]}',
    '{"version":3,"deployment":{"resources":1}}',
    '{"version":"3","deployment":{}}',
    '{"version":99999999999999999999,"deployment":{}}',
    '{"version":4,"features":"views","deployment":{}}',
    ...wrongDeployments.map((deployment) => `{"version":3,"deployment":${deployment}}`),
  ],
  'create stack': [
    'null',
    '[]',
    '{}',
    '"x"',
    '{"stackName":null}',
    '{"stackName":1}',
    '{"stackName":["a"]}',
    '{"stackName":{"toString":"a"}}',
    '{"stackName":""}',
    '{"stackName":"a","tags":[]}',
    '{"stackName":"a","tags":"x"}',
    '{"stackName":"a","tags":{"a":1}}',
    '{"stackName":"a","tags":{"a":null}}',
    '{"stackName":"a","tags":{"a":["b"]}}',
    '{"stackName":"a","teams":"x"}',
    '{"stackName":"a","config":"x"}',
    '{"stackName":"a","config":[]}',
    '{"stackName":"a","state":3}',
    '{"stackName":"a","state":[]}',
    '{"stackName":"a","state":{}}',
    '{"stackName":"a","state":{"version":"x","deployment":{}}}',
    '{"stackName":"a","state":{"version":3,"deployment":[]}}',
    '{"stackName":"a","state":{"version":3,"deployment":{"resources":{}}}}',
    ...wrongDeployments.map((deployment) => `{"stackName":"a","state":{"version":3,"deployment":${deployment}}}`),
  ],
  'create update': [
    '[]',
    '"x"',
    '{"name":1}',
    '{"runtime":{}}',
    '{"options":1}',
    '{"options":[]}',
    '{"options":{"dryRun":"yes"}}',
    '{"options":{"dryRun":1}}',
    '{"config":[]}',
    '{"config":"x"}',
    '{"metadata":[]}',
    '{"metadata":{"message":1}}',
    '{"metadata":{"message":"a\\u0000b"}}',
    '{"metadata":{"message":"a\\ud800b"}}',
    '{"metadata":{"environment":[]}}',
    '{"metadata":{"environment":"x"}}',
  ],
  start: [
    '[]',
    '"x"',
    '1',
    '{"tags":[]}',
    '{"tags":"x"}',
    '{"tags":{"a":1}}',
    '{"tags":{"a b":"c"}}',
    '{"journalVersion":"1"}',
    '{"journalVersion":1.5}',
    '{"journalVersion":[1]}',
    '{"journalVersion":true}',
  ],
  tags: [
    'null',
    '[]',
    '"x"',
    '1',
    '{"a":1}',
    '{"a":null}',
    '{"a":{}}',
    '{"tags":[]}',
    '{"tags":{"a":1}}',
    '{"tags":null}',
  ],
  rename: [
    'null',
    '[]',
    '{}',
    '{"newName":1}',
    '{"newName":null}',
    '{"newName":["a"]}',
    '{"newName":""}',
    '{"newName":"a/b"}',
    '{"newName":"a/b/c/d"}',
    '{"newName":"/"}',
    '{"newName":".."}',
    '{"newName":"."}',
    '{"newName":"a b"}',
    '{"newName":"a","newProject":1}',
    '{"newName":"a","newProject":".."}',
    '{"newName":"a","newProject":"b/c"}',
    '{"newName":"a\\u0000"}',
    '{"newName":"other-org/proj/dev"}',
  ],
  encrypt: [
    'null',
    '[]',
    '{}',
    '{"plaintext":null}',
    '{"plaintext":1}',
    '{"plaintext":"!"}',
    '{"plaintext":"YQ"}',
    '{"plaintext":"YQ= "}',
    '{"plaintext":"Y==="}',
    '{"plaintext":"YQ==YQ=="}',
    '{"plaintext":"-_-_"}',
  ],
  decrypt: [
    'null',
    '[]',
    '{}',
    '{"ciphertext":1}',
    '{"ciphertext":""}',
    '{"ciphertext":"!"}',
    '{"ciphertext":"AAAA"}',
    '{"ciphertext":"toString"}',
    `{"ciphertext":"${'AQ'.repeat(100)}"}`,
  ],
  'batch-encrypt': [
    'null',
    '[]',
    '{}',
    '{"plaintexts":null}',
    '{"plaintexts":{}}',
    '{"plaintexts":"YQ=="}',
    '{"plaintexts":[1]}',
    '{"plaintexts":[null]}',
    '{"plaintexts":["YQ==","!"]}',
  ],
  'batch-decrypt': [
    'null',
    '[]',
    '{}',
    '{"ciphertexts":null}',
    '{"ciphertexts":{}}',
    '{"ciphertexts":[1]}',
    '{"ciphertexts":["__proto__"]}',
    '{"ciphertexts":["toString"]}',
  ],
  'log-decryption': ['null', '[]', '"x"', '1', '{"secretName":1}', '{"secretName":["x"]}', '{"commandName":{}}'],
  renew_lease: [
    'null',
    '[]',
    '{"duration":"300"}',
    '{"duration":0}',
    '{"duration":-1}',
    '{"duration":1.5}',
    '{"duration":{}}',
    '{"token":1}',
  ],
  complete: [
    'null',
    '[]',
    '{}',
    '{"status":null}',
    '{"status":1}',
    '{"status":""}',
    '{"status":"done"}',
    '{"status":"running"}',
    '{"status":"__proto__"}',
    '{"status":["succeeded"]}',
  ],
};

describe('wrong types and values', () => {
  test('the table has every route with a body', () => {
    expect(Object.keys(wrongShapes).sort()).toEqual([...allRouteNames].sort());
  });

  const cases = Object.entries(wrongShapes).flatMap(([name, bodies]) => bodies.map((body) => [name, body] as const));
  test.each(cases)('%s rejects %s', async (name, body) => {
    await expectNothingChanged(routes.server, async () => {
      expectRejection(await send(name, body), 400);
    });
  });
});

describe('bodies above the limit for direct commits', () => {
  // Padding after the value keeps the text valid and makes it a job for the workers.
  const pad = (text: string) => text + ' '.repeat(300 * 1024);

  test.each(routeNames.payload)('%s rejects wrong shapes', async (name) => {
    await expectNothingChanged(routes.server, async () => {
      for (const body of wrongShapes[name]?.slice(0, 4) ?? []) expectRejection(await send(name, pad(body)), 400);
    });
  });
});
