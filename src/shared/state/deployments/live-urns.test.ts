import { expect, test } from '@jest/globals';
import { LiveUrns, urnKey } from './live-urns.ts';

const document = JSON.stringify({
  version: 3,
  resources: [{ urn: 'elsewhere' }],
  deployment: {
    manifest: { urn: 'no resource' },
    resources: [
      { urn: 'a', outputs: { urn: 'inner', delete: true } },
      { urn: 'é::"quoted"', type: 't', filler: 'x'.repeat(200_000) },
      { delete: true, urn: 'deleted' },
      { urn: 'replaced', pendingReplacement: true },
      { urn: 'kept', delete: false, pendingReplacement: null },
      { type: 'without' },
      { urn: 5 },
    ],
    pending_operations: [{ resource: { urn: 'pending' } }],
  },
});

test.each([1, 7, 1_000_000])('finds the resources that are there, in chunks of %i bytes', (size) => {
  const bytes = Buffer.from(document);
  const urns = new LiveUrns();
  for (let at = 0; at < bytes.length; at += size) urns.write(Buffer.from(bytes.subarray(at, at + size)));
  expect([...urns.end()].sort()).toEqual(['a', 'é::"quoted"', 'kept'].map(urnKey).sort());
});
