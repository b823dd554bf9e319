import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** Simulates that a day, or some hours, have passed for the waits of the blob sweep. */
export async function letBlobsAge(app: TestApp, hours = 24): Promise<void> {
  await query(
    app,
    `update blobs set unreferenced_since = unreferenced_since - make_interval(secs => $1),
       delete_at = delete_at - make_interval(secs => $1), deleted_at = deleted_at - make_interval(secs => $1)`,
    [hours * 3600],
  );
}

/** Keys of all rows, in order. */
export async function blobRowKeys(app: TestApp): Promise<string[]> {
  return (await query<{ key: string }>(app, 'select key from blobs')).map(({ key }) => key).sort();
}

/** Keys of all objects of checkpoints, in order. */
export async function storedKeys(app: TestApp): Promise<string[]> {
  const keys: string[] = [];
  let after: string | undefined;
  do {
    const page = await app.context.blobs.list('checkpoints/', after);
    keys.push(...page.blobs.map(({ key }) => key));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return keys.sort();
}
