import { expect, test } from '@jest/globals';
import { urnKey } from '../state/deployments/live-urns.ts';
import type { EventReader } from './event-reader.ts';
import { EventsOfPreviews } from './previewed-changes.ts';

/** Previews that delete so many resources. Counts the reads. */
function previewsOf(deletes: number) {
  let reads = 0;
  const events = {
    async *read() {
      reads++;
      for (let at = 0; at < deletes; at++) {
        const text = JSON.stringify({ resourcePreEvent: { metadata: { op: 'delete', urn: `urn:${at}` } } });
        yield [{ bytes: text.length, text }];
      }
    },
  };
  return { previewed: new EventsOfPreviews({ events: events as unknown as EventReader }), reads: () => reads };
}

test('a preview that deletes very many resources is read once', async () => {
  const { previewed, reads } = previewsOf(60_000);
  expect((await previewed.of('one')).size).toBe(60_000);
  expect((await previewed.of('one')).has(urnKey('urn:59999'))).toBe(true);
  expect(reads()).toBe(1);
});

test('batches of entries at the same time share one read', async () => {
  const { previewed, reads } = previewsOf(3);
  const sets = await Promise.all(['one', 'one', 'two'].map((id) => previewed.of(id)));
  expect(sets.map(({ size }) => size)).toEqual([3, 3, 3]);
  expect(reads()).toBe(2);
});
