import { expect, test } from '@jest/globals';
import type { AppContext } from '../../shared/context.ts';
import type { VersionRepository } from '../../shared/state/version-repository.ts';
import { encodeVersions } from './encode-versions.ts';
import type { VersionEncoder } from './version-encoder.ts';

test('unneeded chunks are swept while many versions are due', async () => {
  const pages = [50, 50, 20].map((count) =>
    Array.from({ length: count }, (_, at) => ({ id: String(at), encodeAt: '' })),
  );
  const order: string[] = [];
  const counter = { labels: () => ({ inc: () => {} }), inc: () => {} };
  const context = {
    chunks: { sweep: async () => order.push('sweep') },
    config: { encoding: { bytesPerSecond: 1e12 } },
    metrics: { versionsEncoded: counter, versionBytesSaved: counter },
  } as unknown as AppContext;
  const versions = {
    listDue: async () => {
      order.push('list');
      return pages.shift();
    },
  } as unknown as VersionRepository;
  const encoder = {
    encodeDue: async () => ({ encoded: 1, shared: 0, savedBytes: 0, textBytes: 1 }),
  } as unknown as VersionEncoder;
  expect(await encodeVersions(context, { versions, encoder })).toBe(120);
  expect(order).toEqual(['list', 'sweep', 'list', 'sweep', 'list']);
});
