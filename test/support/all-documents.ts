import { insertEvents, pack, sampleEvent } from './archived-events.ts';
import { query } from './database.ts';
import { encodeAll, importVersions, makeDue } from './encode-versions.ts';
import { PolicyCalls, smallArchive } from './policy-packs.ts';
import { createStack, ok, startUpdate, type TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';
import { complete, saveState } from './update-calls.ts';

/** Chunks of older versions, archived events and a policy pack, all in blobs. */
export async function writeEverything(app: TestApp): Promise<{ stack: TestStack; update: string }> {
  const stack = await createStack(app);
  await importVersions(app, stack, 3);
  await makeDue(app, stack);
  await encodeAll(app);
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  await insertEvents(app, update.id, [sampleEvent(1), sampleEvent(2)]);
  await pack(app, update.id);
  await new PolicyCalls(app, stack).publish({ archive: smallArchive });
  return { stack, update: update.id };
}

export async function readEverything(
  app: TestApp,
  { stack, update }: { readonly stack: TestStack; readonly update: string },
): Promise<string[]> {
  const { auth, path: at } = stack;
  const states = [1, 2, 3, 4].map((version) => `${at}/export/${version}`);
  const texts: string[] = [];
  for (const url of [...states, `${at}/export`, `${at}/update/${update}/events`])
    texts.push((await ok(app.call('GET', url, { auth }))).text);
  const [archive] = await query(app, 'select id from policy_pack_versions');
  const { bytes } = await app.context.policyArchives.open(String(archive?.['id']));
  texts.push(Buffer.concat(await Array.fromAsync(bytes)).toString('hex'));
  return texts;
}
