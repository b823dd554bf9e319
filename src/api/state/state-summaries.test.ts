import { expect, test } from '@jest/globals';
import { heapGrowth } from '../../../test/support/heap.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import { StateSummaries } from './state-summaries.ts';

const mib = 1024 * 1024;
const scan = { begin: () => Promise.resolve(), assertWanted: () => {} } as unknown as StateScan;
const root = { urn: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev', type: 'pulumi:pulumi:Stack' };

/** `ids`: of resources whose creation was interrupted. */
async function* stateOf(outputs: object, ids: readonly string[]): AsyncGenerator<Buffer> {
  const urn = 'urn:pulumi:dev::shop::a:b:C::c';
  const pending = ids.map((id) => ({ type: 'creating', resource: { urn, type: 'a:b:C', custom: true, id } }));
  yield Buffer.from(
    JSON.stringify({ version: 3, deployment: { resources: [{ ...root, outputs }], pending_operations: pending } }),
  );
}

test('of a long output, only the shown part stays in memory', async () => {
  const summaries = new StateSummaries();
  const growth = await heapGrowth(async () => {
    for (let at = 0; at < 40; at++) {
      const outputs = { text: `${at}`.padEnd(2 * mib, 'x'), list: ['y'.repeat(mib)] };
      const shown = await summaries.read(scan, `${at}`, async () => stateOf(outputs, []));
      expect(shown.outputs.map(({ isCut, value }) => [isCut, value?.length])).toEqual([
        [true, 20_000],
        [true, 20_000],
      ]);
    }
    return summaries;
  });
  expect(growth).toBeLessThan(20 * mib);
});

test('a summary is kept within the size of all, unless it is larger itself', async () => {
  const summaries = new StateSummaries();
  const opened: string[] = [];
  const read = (key: string, ids: readonly string[]) =>
    summaries.read(scan, key, async () => {
      opened.push(key);
      return stateOf({}, ids);
    });
  const idOf = (letter: string): string => letter.repeat(3_000_000);
  for (const _ of [1, 2]) {
    expect((await read('small', ['id'])).pending).toMatchObject([{ id: 'id', isImportable: true }]);
    expect((await read('large', ['a', 'b', 'c'].map(idOf))).pending).toHaveLength(3);
  }
  expect(opened).toEqual(['small', 'large', 'large']);
  for (const key of ['a', 'b', 'c', 'b', 'a']) await read(key, [idOf(key)]);
  expect(opened.slice(3)).toEqual(['a', 'b', 'c', 'a']);
});
