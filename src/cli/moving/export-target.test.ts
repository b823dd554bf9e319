import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bytesOf } from '../../shared/platform/bytes/byte-source.ts';
import { openTarget, sameButForCase, TargetGuard } from './export-target.ts';

function folderOf(keyOf: (name: string) => string): Folder {
  const files = new Map<string, Buffer>();
  return {
    list: async function* (prefix) {
      for (const [name, { length }] of files)
        if (name.startsWith(keyOf(prefix))) yield { name, bytes: length, modifiedAt: new Date(0) };
    },
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

test('a stack replaces no files of one whose name differs in case, also of an earlier export', async () => {
  const folder = folderOf((name) => name.toLowerCase());
  const write = (name: string, text: string) => folder.write(name, bytesOf(Buffer.from(text))());
  const guardOf = (stack: string, id = stack) =>
    new TargetGuard(folder, { id, organization: 'acme', project: 'web', stack });
  const refused = /^another stack, web\/Dev, has the same files there/;
  const dev = guardOf('Dev');
  await dev.claim();
  // Nothing is there yet.
  await guardOf('dev').claim();
  await dev.claim();
  await write('.pulumi/history/web/Dev/Dev-1.history.json', '{"version":1}');
  await expect(guardOf('dev').claim()).rejects.toThrow(refused);
  await dev.beforeState(createHash('sha256').update('{}').digest('hex'));
  await write('.pulumi/stacks/web/Dev.json', '{}');
  await folder.delete('.pulumi/history/web/Dev/Dev-1.history.json');
  await expect(guardOf('dev').claim()).rejects.toThrow(refused);
  await dev.claim();
  // Renamed, and renamed back.
  await guardOf('dev', 'Dev').claim();
  await dev.claim();
  // Created again under its name.
  await guardOf('Dev', 'new').claim();
  await expect(guardOf('dev', 'Dev').claim()).rejects.toThrow(/if it is gone, delete its files$/);
});
