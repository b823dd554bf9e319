import { expect, test } from '@jest/globals';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bytesOf } from '../../shared/state/checkpoints/body-buffer.ts';
import { openTarget, sameButForCase } from './export-target.ts';

/** A folder in memory. */
function folderOf(keyOf: (name: string) => string): Folder {
  const files = new Map<string, Buffer>();
  return {
    list: async function* () {},
    open: async (name) => {
      const bytes = files.get(keyOf(name));
      return bytes === undefined ? null : bytesOf(bytes)();
    },
    write: async (name, body) => void files.set(keyOf(name), Buffer.concat(await Array.fromAsync(body))),
    delete: async (name) => void files.delete(keyOf(name)),
    close: async () => {},
  };
}

test('a folder says whether case makes a difference, and then which stacks have the same files', async () => {
  const target = { organization: 'acme', to: 'file:///srv' };
  expect(
    await openTarget(
      folderOf((name) => name),
      target,
    ),
  ).toEqual({ isCaseless: false });
  expect(
    await openTarget(
      folderOf((name) => name.toLowerCase()),
      target,
    ),
  ).toEqual({ isCaseless: true });
  expect([...sameButForCase(['Web/dev', 'api/dev', 'web/Dev', 'web/dev'])]).toEqual(['web/Dev', 'web/dev']);
});
