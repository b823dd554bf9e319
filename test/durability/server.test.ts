import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type OwnHoldfastServer, startOwnHoldfast } from '../../testkit/holdfast-server.ts';
import { until } from '../../testkit/until.ts';
import { creation } from '../support/journal-entries.ts';
import { deployment } from '../support/state.ts';
import { describeOnLossyDisk, type Loss, LossyDisk } from './support/lossy-disk.ts';

/** Far above the limit for documents in the database, so that they become files. */
const largeCount = 4_000;

await describeOnLossyDisk('a server with its own Postgres after a power cut', () => {
  let disk: LossyDisk;
  let server: OwnHoldfastServer;

  beforeEach(async () => {
    disk = await LossyDisk.mount();
  });
  afterEach(async () => {
    await server?.[Symbol.asyncDispose]();
    await disk[Symbol.asyncDispose]();
  });

  /** The machine loses power and is started again. */
  async function cutPower(loss: Loss): Promise<void> {
    await disk.cut(loss);
    await server.kill();
    await disk.restore();
    await server.restart();
  }

  async function call(method: string, route: string, authorization: string, body?: object): Promise<string> {
    const answer = await fetch(`${server.url}${route}`, {
      method,
      headers: { authorization, 'content-type': 'application/json', accept: 'application/vnd.pulumi+8' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${text}`);
    return text;
  }

  test('exports every acknowledged state byte for byte, and starts afresh when its first start was cut', async () => {
    const settings = { HOLDFAST_DATA_DIR: path.join(disk.directory, 'data') };
    const firstStart = Promise.allSettled([startOwnHoldfast(settings)]);
    // initdb syncs at its end.
    await until(async () => (await disk.syncs()) > 50, 'initdb is syncing', { everyMs: 5 });
    await disk.cut({ seed: 3 });
    expect(await firstStart).toMatchObject([{ status: 'rejected' }]);
    await disk.restore();
    server = await startOwnHoldfast(settings);
    const token = `token ${server.token}`;
    const stacks = `/api/stacks/${server.organization}/proj`;
    const create = async (name: string): Promise<string> => {
      await call('POST', stacks, token, { stackName: name });
      return `${stacks}/${name}`;
    };
    const start = async (stack: string, journal: boolean): Promise<{ update: string; lease: string }> => {
      const { updateID } = JSON.parse(await call('POST', `${stack}/update`, token, {}));
      const update = `${stack}/update/${updateID}`;
      const started = JSON.parse(await call('POST', update, token, journal ? { journalVersion: 1 } : {}));
      return { update, lease: `update-token ${started.token}` };
    };
    const complete = (of: { update: string; lease: string }) =>
      call('POST', `${of.update}/complete`, of.lease, { status: 'succeeded' });
    const append = (to: { update: string; lease: string }, at: number, stack: string) =>
      call('PATCH', `${to.update}/journalentries`, to.lease, {
        entries: creation(at, `r${at}`, { project: 'proj', stack }),
      });

    const imported = await create('imported');
    const large = await create('large');
    const verbatim = await create('verbatim');
    const journaled = await create('journaled');
    const running = await create('running');
    await call('POST', `${imported}/import`, token, deployment(3, 'imported'));
    await call('POST', `${large}/import`, token, deployment(largeCount, 'large'));
    const ofVerbatim = await start(verbatim, false);
    for (const [sequenceNumber, count] of [
      [1, 5],
      [2, largeCount],
    ] as const) {
      const body = { version: 3, untypedDeployment: deployment(count, 'verbatim'), sequenceNumber };
      await call('PATCH', `${ofVerbatim.update}/checkpointverbatim`, ofVerbatim.lease, body);
    }
    await complete(ofVerbatim);
    const ofJournaled = await start(journaled, true);
    for (let at = 1; at < 20; at += 2) await append(ofJournaled, at, 'journaled');
    await complete(ofJournaled);
    const ofRunning = await start(running, true);
    for (let at = 1; at < 10; at += 2) await append(ofRunning, at, 'running');
    const exports = async (): Promise<string[]> => {
      const texts: string[] = [];
      for (const stack of [imported, large, verbatim, journaled, running])
        texts.push(await call('GET', `${stack}/export`, token));
      return texts;
    };
    const before = await exports();
    await append(ofRunning, 11, 'running');
    // Entries 13 and 14 are missing: the call compacts, without a wait for the disk, and does not end the update.
    await append(ofRunning, 15, 'running');
    await expect(complete(ofRunning)).rejects.toThrow('entries 13-14 are missing');

    await cutPower({ seed: 1 });
    const after = await exports();
    expect(after.slice(0, 4).map((text, at) => text === before[at])).toEqual([true, true, true, true]);
    const { resources } = JSON.parse(after[4] as string).deployment;
    expect(resources.map(({ urn }: { urn: string }) => urn.split('::').at(-1))).toEqual([
      'r1',
      'r3',
      'r5',
      'r7',
      'r9',
      'r11',
      'r15',
    ]);
    // It is writable as before and survives another power cut.
    await append(ofRunning, 13, 'running');
    await complete(ofRunning);
    const last = await call('GET', `${running}/export`, token);
    await cutPower('all');
    expect(await call('GET', `${running}/export`, token)).toBe(last);
    expect(server.faults()).toEqual([]);
  });
});
