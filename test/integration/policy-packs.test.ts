import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { blobDownloads } from '../../src/api/platform/admission/blob-downloads.ts';
import { ArchiveUrls, archiveUrlPurpose } from '../../src/api/policies/archive-urls.ts';
import { PolicyPackService } from '../../src/api/policies/policy-pack-service.ts';
import { readBackDocuments } from '../../src/cli/fsck/read-back.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { createPolicyArchiveRepository } from '../../src/shared/policies/policy-archive-repository.ts';
import { EncryptedSecrets } from '../../src/shared/secrets/encrypted-secrets.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { blobRowKeys, letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { blobFile, flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { namedPolicy, PolicyCalls, pathOf, smallArchive } from '../support/policy-packs.ts';
import { ask } from '../support/procedures.ts';
import { sentStatements } from '../support/sent-statements.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { contractAccept, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();
/** Above the size of documents in rows. */
const largeArchive = Buffer.concat([gzipSync(''), randomBytes(3 * 1024 * 1024)]);

let stack: TestStack;
let calls: PolicyCalls;
beforeEach(async () => {
  stack = await createStack(app);
  calls = new PolicyCalls(app, stack);
});

const rejected = async (response: Promise<{ status: number; json: { message: string } }>, status: number) => {
  const { json, status: actual } = await response;
  expect({ status: actual, message: json.message }).toEqual({ status, message: expect.stringMatching(/./) });
  return json.message;
};

const newStack = async (project: string, name: string): Promise<string> => {
  const path = `/api/stacks/${stack.organization}/${project}`;
  await ok(app.call('POST', path, { auth: stack.auth, body: { stackName: name } }));
  return `${path}/${name}`;
};

/** An entry of a tar file: its header, without contents. */
function entry(name: string, type: string, link = ''): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0, 100);
  header.write('0000644\0', 100);
  header.write('00000000000\0', 124);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

const tarOf = (...entries: readonly Buffer[]): Buffer => gzipSync(Buffer.concat([...entries, Buffer.alloc(1_024)]));

/** Contents that would harm a careless unpacker. */
const hostileArchives: Readonly<Record<string, Buffer>> = {
  // A GiB, as one file of many members.
  'a bomb': Buffer.concat(new Array<Buffer>(64).fill(gzipSync(Buffer.alloc(16 * 1024 * 1024)))),
  'paths out of its folder': tarOf(entry('../../outside', '0'), entry('/tmp/outside', '0')),
  links: tarOf(entry('link', '2', '/etc'), entry('link/passwd', '0'), entry('hard', '1', '/etc/passwd')),
  'devices and pipes': tarOf(entry('device', '3'), entry('block', '4'), entry('pipe', '6')),
  'repeated and long names': tarOf(entry('same', '0'), entry('same', '5'), entry('n'.repeat(100), '0')),
  'an end in the middle': tarOf(entry('file', '0')).subarray(0, 20),
};

async function listFiles(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort();
}

describe('a policy pack', () => {
  test('is published with a token that belongs to the organization', async () => {
    const tokens = `/api/orgs/${stack.organization}/tokens`;
    const { json } = await ok(app.call('POST', tokens, { auth: stack.auth, body: { name: 'ci', admin: true } }));
    const ci = new PolicyCalls(app, { ...stack, auth: `token ${json.tokenValue}` });
    await ci.publish();
    await ok(ci.enable({ name: 'pack' }));
    expect(await calls.required()).toHaveLength(1);
  });

  test('is published, enabled and required by updates, which can download the same bytes', async () => {
    for (const archive of [smallArchive, largeArchive]) {
      const name = `pack-${archive.length}`;
      await calls.publish({ name, archive });
      await ok(calls.enable({ name, versionTag: '1.0.0', config: { all: { enforcementLevel: 'advisory' } } }));
      const required = (await calls.required()).find((policy) => policy.name === name);
      expect(required).toEqual({
        name,
        version: 1,
        versionTag: '1.0.0',
        displayName: 'A pack',
        packLocation: expect.stringContaining('/policy-packs/'),
        config: { all: { enforcementLevel: 'advisory' } },
      });
      const { bytes, headers, status } = await calls.download(required);
      expect({ status, type: headers['content-type'], length: headers['content-length'] }).toEqual({
        status: 200,
        type: 'application/gzip',
        length: String(archive.length),
      });
      expect(bytes.equals(archive)).toBe(true);
    }
    const { auth, path } = stack;
    for (const kind of ['update', 'preview', 'refresh', 'destroy']) {
      const { json } = await ok(app.call('POST', `${path}/${kind}`, { auth, body: { options: { dryRun: true } } }));
      expect(json.requiredPolicies.map(({ name }: { name: string }) => name)).toHaveLength(2);
    }
    const other = await ok(app.call('POST', `${path}/preview`, { auth, accept: contractAccept, body: {} }));
    expect(other.json).toEqual({ updateID: expect.any(String) });
  });

  test('is required by nobody before it is enabled, and after it is disabled', async () => {
    await calls.publish();
    expect(await calls.required()).toEqual([]);
    await rejected(calls.disable({ name: 'pack' }), 404);
    await ok(calls.enable({ name: 'pack' }));
    expect(await calls.required()).toHaveLength(1);
    await rejected(calls.disable({ name: 'pack', versionTag: '2.0.0' }), 404);
    await ok(calls.disable({ name: 'pack', versionTag: '1.0.0' }));
    expect(await calls.required()).toEqual([]);
  });

  test('is listed with its versions, and enabled by version or as the latest', async () => {
    await calls.publish({ tag: '1.0.0' });
    await calls.publish({ tag: '' });
    await calls.publish({ tag: '1.1.0' });
    expect((await ok(calls.call('GET', 'policypacks'))).json).toEqual({
      policyPacks: [{ name: 'pack', displayName: 'A pack', versions: [1, 2, 3], versionTags: ['1.0.0', '2', '1.1.0'] }],
    });
    const enabled = async (pack: object) => {
      await ok(calls.enable({ name: 'pack', ...pack }));
      return (await calls.required()).map(({ versionTag }) => versionTag);
    };
    expect(await enabled({})).toEqual(['1.1.0']);
    expect(await enabled({ versionTag: '1.0.0' })).toEqual(['1.0.0']);
    expect(await enabled({ version: 2 })).toEqual(['2']);
    expect(await enabled({ versionTag: '3' })).toEqual(['1.1.0']);
    await rejected(calls.enable({ name: 'pack', versionTag: '9' }), 404);
    await rejected(calls.enable({ name: 'other' }), 404);
  });

  test('is published without a tag, whatever numbers are tags', async () => {
    for (const tag of ['2', '4', '', '']) await calls.publish({ tag });
    const { policyPacks } = (await ok(calls.call('GET', 'policypacks'))).json;
    expect(policyPacks).toMatchObject([{ versions: [1, 2, 3, 5], versionTags: ['2', '4', '3', '5'] }]);
    // A tag comes before a number.
    expect((await ok(calls.call('GET', 'policypacks/pack/versions/2'))).json).toMatchObject({ version: 1 });
  });

  test('has the schemas of its configuration, and refuses configuration of policies and levels that it does not have', async () => {
    await calls.publish();
    expect((await ok(calls.call('GET', 'policypacks/pack/versions/1.0.0/schema'))).json).toEqual({
      configSchema: { 'no-buckets': namedPolicy.configSchema },
    });
    await rejected(calls.call('GET', 'policypacks/pack/versions/1.0.1/schema'), 404);
    expect(await rejected(calls.enable({ name: 'pack', config: { absent: {} } }), 400)).toContain('"absent"');
    const level = { 'no-buckets': { enforcementLevel: 'compulsory' } };
    expect(await rejected(calls.enable({ name: 'pack', config: level }), 400)).toContain('mandatory');
    expect(await rejected(calls.enable({ name: 'pack', environments: ['e'] }), 400)).toContain('ESC');
    expect(await calls.required()).toEqual([]);
  });

  test('has a short name for display, which lists repeat', async () => {
    const begin = (displayName: string) =>
      calls.call('POST', 'policypacks', { name: 'pack', displayName, versionTag: '1', policies: [] });
    await rejected(begin('n'.repeat(501)), 400);
    await ok(begin('n'.repeat(500)));
  });

  test('is removed by version or as a whole, but not while a group uses it', async () => {
    await calls.publish({ tag: '1.0.0' });
    await calls.publish({ tag: '2.0.0' });
    await ok(calls.enable({ name: 'pack', versionTag: '2.0.0' }));
    expect(await rejected(calls.call('DELETE', 'policypacks/pack/versions/2.0.0'), 409)).toContain(
      'default-policy-group',
    );
    await rejected(calls.call('DELETE', 'policypacks/pack'), 409);
    await ok(calls.call('DELETE', 'policypacks/pack/versions/1.0.0'));
    await rejected(calls.call('DELETE', 'policypacks/pack/versions/1.0.0'), 404);
    const [required] = await calls.required();
    await ok(calls.disable({ name: 'pack' }));
    await ok(calls.call('DELETE', 'policypacks/pack'));
    expect((await ok(calls.call('GET', 'policypacks'))).json).toEqual({ policyPacks: [] });
    await rejected(calls.download(required), 404);
    await rejected(calls.call('DELETE', 'policypacks/pack'), 404);
    await rejected(calls.call('DELETE', 'policypacks/none'), 404);
    // Clients keep what they have installed by its tag.
    expect(await rejected(calls.begin({ tag: '2.0.0' }), 409)).toContain('was published before and removed');
    await calls.publish({ tag: '3.0.0' });
  });
});

describe('publishing', () => {
  test('does not change a version that is published', async () => {
    const begun = await ok(calls.begin());
    await ok(calls.upload(begun));
    // Uploads are retried.
    await ok(calls.upload(begun));
    await ok(calls.complete());
    await ok(calls.complete());
    expect(await rejected(calls.begin(), 409)).toContain('already published');
    await rejected(calls.upload(begun, gzipSync('other files')), 409);
    // As an upload that began before.
    const { archiveId } = /policy-packs\/(?<archiveId>[^?]+)/.exec(begun.json.uploadURI)?.groups ?? {};
    const late = app.context.policyArchives.receive(archiveId as string, bytesOf(gzipSync('other files'))());
    await expect(late).rejects.toThrow('too late');
    await ok(calls.enable({ name: 'pack' }));
    expect((await calls.download((await calls.required())[0])).bytes.equals(smallArchive)).toBe(true);
  });

  test('stores one archive', async () => {
    const begun = await ok(calls.begin());
    await ok(calls.upload(begun, largeArchive));
    const rows = await blobRowKeys(app);
    const other = Buffer.concat([gzipSync(''), randomBytes(3 * 1024 * 1024)]);
    expect(await rejected(calls.upload(begun, other), 409)).toContain('another archive');
    await ok(calls.upload(begun, largeArchive));
    expect(await blobRowKeys(app)).toEqual(rows);
    const twice = await ok(calls.begin({ tag: '2.0.0' }));
    const [first, second] = await Promise.all([calls.upload(twice, largeArchive), calls.upload(twice, other)]);
    expect([first.status, second.status].sort()).toEqual([204, 409]);
    const { id } = /policy-packs\/(?<id>[^?]+)/.exec(twice.json.uploadURI)?.groups ?? {};
    const archives = createPolicyArchiveRepository(app.context.db);
    const stored = await archives.find(id as string);
    if (!stored) throw new Error('no archive');
    expect(await archives.set(stored.id, { ...stored, sha256: Buffer.alloc(32) })).toBe(false);
  });

  test('receives few archives of an organization at once, and lets many others wait', async () => {
    const packs = new PolicyPackService(app.context);
    const gate = Promise.withResolvers<void>();
    let arriving = 0;
    async function* slow(): AsyncGenerator<Buffer> {
      arriving++;
      await gate.promise;
      yield smallArchive;
    }
    const send = async (to: PolicyCalls, tag: string) => {
      const { uploadURI } = (await ok(to.begin({ tag }))).json;
      return { done: packs.receive(/policy-packs\/([^?]+)/.exec(uploadURI)?.[1] as string, slow()) };
    };
    const sent = [];
    for (let at = 0; at < 30; at++) sent.push(await send(calls, `${at}.0.0`));
    await until(() => arriving === 4, 'four arrive');
    sent.push(await send(new PolicyCalls(app, await createStack(app)), '1.0.0'));
    await until(() => arriving === 5, 'that of another organization arrives');
    gate.resolve();
    await Promise.all(sent.map(({ done }) => done));
    expect(arriving).toBe(31);
  });

  test('fails at its end if the archive was not stored, and can be started again', async () => {
    for (const archive of [Buffer.from('not a .tgz file'), Buffer.alloc(0), Buffer.from([0x1f])]) {
      const begun = await ok(calls.begin());
      await rejected(calls.upload(begun, archive), 400);
      expect(await rejected(calls.complete(), 409)).toContain('not stored');
      await rejected(calls.enable({ name: 'pack', versionTag: '1.0.0' }), 404);
      expect(await rejected(calls.begin(), 409)).toContain('pulumi policy rm');
      await ok(calls.call('DELETE', 'policypacks/pack/versions/1.0.0'));
      await rejected(calls.upload(begun), 404);
    }
    expect((await ok(calls.call('GET', 'policypacks'))).json).toEqual({ policyPacks: [] });
    await calls.publish();
  });

  test('of somebody else is neither replaced nor completed, until its address has expired', async () => {
    const first = await ok(calls.begin());
    const auth = `token ${await app.createUser(stack.organization, 'admin')}`;
    const other = new PolicyCalls(app, { ...stack, auth });
    await rejected(other.begin(), 409);
    await ok(calls.upload(first));
    expect(await rejected(other.complete(), 409)).toContain('Another user');
    await query(app, `update policy_pack_versions set begun_at = begun_at - interval '61 minutes'`);
    expect(await rejected(calls.upload(first), 403)).toContain('expired');
    const second = await ok(other.begin());
    await ok(other.upload(second, largeArchive));
    await rejected(calls.upload(first), 404);
    await rejected(calls.complete(), 409);
    await ok(other.complete());
  });

  test('an archive above the limit is rejected before it has arrived', async () => {
    const begun = await ok(calls.begin());
    const answer = await app.call('PUT', pathOf(begun.json.uploadURI), {
      accept: null,
      headers: { 'content-length': String(65 * 1024 * 1024) },
      body: Buffer.alloc(0),
    });
    expect(answer.status).toBe(413);
  });

  test.each(Object.entries(hostileArchives))(
    'an archive with %s is passed on as it is, and never unpacked',
    async (name, archive) => {
      const files = await listFiles(app.dataDir);
      const before = process.memoryUsage.rss();
      await calls.publish({ archive });
      await ok(calls.enable({ name: 'pack', version: 1 }));
      const [required] = await calls.required();
      expect((await ok(calls.download(required))).bytes.equals(archive)).toBe(true);
      expect((await listFiles(app.dataDir)).filter((file) => !files.includes(file) && !/blobs/.test(file))).toEqual([]);
      if (name === 'a bomb') expect(process.memoryUsage.rss() - before).toBeLessThan(256 * 1024 * 1024);
    },
  );

  test.each(['a/b', '..', '', 'x'.repeat(101), 'ü'])('the name %j is rejected', async (name) => {
    await rejected(calls.begin({ name }), 400);
    await rejected(calls.call('POST', 'policygroups', { name }), 400);
    if (name !== '') await rejected(calls.begin({ tag: name }), 400);
  });
});

describe('an address of an archive', () => {
  test('is valid for its purpose and version, and for an hour', async () => {
    await calls.publish({ name: 'one' });
    await calls.publish({ name: 'two', archive: largeArchive });
    await ok(calls.enable({ name: 'one' }));
    await ok(calls.enable({ name: 'two' }));
    const begun = await ok(calls.begin({ name: 'three' }));
    const addresses: string[] = (await calls.required()).map(({ packLocation }) => pathOf(packLocation));
    const [one = '', two = ''] = addresses;
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const idOf = (path: string) => /policy-packs\/([^?]+)/.exec(path)?.[1] ?? '';
    const forged = [
      one.replace(idOf(one), idOf(two)),
      one.replace(/expires=\d+/, (found) => `${found}0`),
      one.replace(/(?<=signature=)./, (found) => (found === '_' ? '-' : '_')),
      // Spelled differently, with the same bytes: the last digit has two bits that no byte needs.
      one.replace(/.$/, (found) => digits[digits.indexOf(found) + 1] as string),
      `${one}=`,
      `${one}.`,
      one.replace(/&signature.*/, ''),
      one.replace(/\?.*/, ''),
      `${one}&signature=x`,
      one.replace(idOf(one), 'nonsense'),
      pathOf(begun.json.uploadURI),
    ];
    for (const url of forged) {
      const { status } = await app.call('GET', url, { accept: null });
      expect({ url, status }).toEqual({ url, status: 403 });
    }
    expect((await app.call('PUT', one, { accept: null, body: smallArchive })).status).toBe(403);
    expect((await app.call('GET', one, { accept: null })).status).toBe(200);
    const { config, db, secrets } = app.context;
    const urlsOf = (derived: EncryptedSecrets): ArchiveUrls =>
      new ArchiveUrls(config.publicUrl, () => derived.deriveKeys(db, archiveUrlPurpose));
    // A copy of the database does not suffice.
    for (const ring of [keyRingOf(`k1:${Buffer.alloc(32).toString('base64')}`), null]) {
      const strange = await urlsOf(new EncryptedSecrets(ring)).create('download', idOf(one), new Date());
      expect((await app.call('GET', pathOf(strange), { accept: null })).status).toBe(403);
    }
    const urls = urlsOf(secrets);
    for (const [age, expected] of [
      [59, 200],
      [61, 403],
    ] as const) {
      const address = await urls.create('download', idOf(one), new Date(Date.now() - age * 60_000));
      const { status } = await app.call('GET', pathOf(address), { accept: null });
      expect({ age, status }).toEqual({ age, status: expected });
    }
  });
});

describe('policy groups', () => {
  test('apply to their stacks; the default one to all stacks in no other', async () => {
    for (const name of ['everywhere', 'strict']) await calls.publish({ name });
    const second = await newStack('proj', 'prod');
    await ok(calls.enable({ name: 'everywhere' }));
    await ok(calls.call('POST', 'policygroups', { name: 'production', entityType: 'stacks', mode: 'preventative' }));
    await rejected(calls.call('POST', 'policygroups', { name: 'production' }), 409);
    await ok(calls.call('PATCH', 'policygroups/production', { addStack: { name: 'prod', routingProject: 'proj' } }));
    await ok(calls.enable({ name: 'strict', config: { all: 'mandatory' } }, 'production'));
    const names = async (path?: string) => (await calls.required(path)).map(({ name }) => name);
    expect(await names()).toEqual(['everywhere']);
    expect(await names(second)).toEqual(['strict']);
    expect((await ok(calls.call('GET', 'policygroups'))).json.policyGroups).toEqual([
      {
        name: 'default-policy-group',
        isOrgDefault: true,
        entityType: 'stacks',
        mode: 'preventative',
        numStacks: 1,
        numEnabledPolicyPacks: 1,
      },
      {
        name: 'production',
        isOrgDefault: false,
        entityType: 'stacks',
        mode: 'preventative',
        numStacks: 1,
        numEnabledPolicyPacks: 1,
      },
    ]);
    expect((await ok(calls.call('GET', 'policygroups/production'))).json).toEqual({
      name: 'production',
      isOrgDefault: false,
      entityType: 'stacks',
      mode: 'preventative',
      stacks: [{ name: 'prod', routingProject: 'proj' }],
      appliedPolicyPacks: [
        { name: 'strict', displayName: 'A pack', versionTag: '1.0.0', config: { all: 'mandatory' } },
      ],
      accounts: [],
    });
    // Everyone's numbers count the stacks that they may read.
    const limited = await person(app, stack.organization, 'member');
    await grant(app, limited.organizationId, { userId: limited.userId }, 'deny', ['read'], { stacks: 'hidden/*' });
    const counted = async (auth: string) => {
      const listed = await ok(app.call('GET', `/api/orgs/${stack.organization}/policygroups`, { auth }));
      const shown = await ask(app, auth.replace('token ', ''), 'policies.groups', { organization: stack.organization });
      const counts = listed.json.policyGroups.map(({ numStacks }: { numStacks: number }) => numStacks);
      expect(shown.data.items.map(({ stackCount }: { stackCount: number }) => stackCount)).toEqual(counts);
      return counts;
    };
    for (const name of ['added', 'kept']) await newStack('hidden', name);
    expect([await counted(stack.auth), await counted(limited.auth)]).toEqual([
      [3, 1],
      [1, 1],
    ]);
    await ok(calls.call('PATCH', 'policygroups/production', { addStack: { name: 'kept', routingProject: 'hidden' } }));
    expect([await counted(stack.auth), await counted(limited.auth)]).toEqual([
      [2, 2],
      [1, 1],
    ]);
    // By names of stacks, not of projects alone.
    await grant(app, limited.organizationId, { userId: limited.userId }, 'deny', ['read'], { stacks: '*/prod' });
    expect(await counted(limited.auth)).toEqual([1, 0]);
    // A stack keeps its group under a new name; a new stack of the old name has none.
    await ok(app.call('POST', `${second}/rename`, { auth: stack.auth, body: { newName: 'live' } }));
    expect(await names(second.replace('prod', 'live').replace('/live/', '/proj/'))).toEqual(['strict']);
    expect(await names(await newStack('proj', 'prod'))).toEqual(['everywhere']);
    await ok(calls.call('DELETE', 'policygroups/production'));
    await rejected(calls.call('GET', 'policygroups/production'), 404);
    expect(await names(`/api/stacks/${stack.organization}/proj/live`)).toEqual(['everywhere']);
  });

  test('are changed as a whole or not at all', async () => {
    await calls.publish({ tag: '1.0.0' });
    await calls.publish({ tag: '2.0.0' });
    await newStack('proj', 'prod');
    await ok(calls.call('POST', 'policygroups', { name: 'group' }));
    const change = (body: object) => calls.call('PATCH', 'policygroups/group', body);
    const read = async (name = 'group') => (await ok(calls.call('GET', `policygroups/${name}`))).json;
    const prod = { name: 'prod', routingProject: 'proj' };
    await ok(change({ stacks: [prod], policyPacks: [{ name: 'pack', versionTag: '1.0.0' }] }));
    // As the CLI adds a version to those that are there.
    await ok(
      change({
        policyPacks: [
          { name: 'pack', versionTag: '1.0.0' },
          { name: 'pack', versionTag: '2.0.0' },
        ],
      }),
    );
    // An edit sends back what it read, so a tag must not become the number of another version.
    await calls.publish({ tag: '02' });
    await ok(change({ policyPacks: [{ name: 'pack', versionTag: '02' }] }));
    expect((await read()).appliedPolicyPacks).toEqual([
      { name: 'pack', displayName: 'A pack', versionTag: '02', config: expect.anything() },
    ]);
    await ok(change({ policyPacks: [{ name: 'pack', versionTag: '2.0.0' }] }));
    const before = await read();
    expect(before).toMatchObject({ stacks: [prod], appliedPolicyPacks: [{ versionTag: '2.0.0' }] });
    await rejected(change({ newName: 'new', stacks: [], policyPacks: [{ name: 'absent' }] }), 404);
    await rejected(change({ newName: 'default-policy-group', stacks: [], policyPacks: [] }), 409);
    await rejected(change({ stacks: [prod, { name: 'absent', routingProject: 'proj' }] }), 404);
    await rejected(change({ stacks: [], addInsightsAccount: { name: 'a' } }), 400);
    expect(await read()).toEqual(before);
    await ok(change({ newName: 'new', removeStack: prod, policyPacks: [] }));
    expect(await read('new')).toMatchObject({ stacks: [], appliedPolicyPacks: [] });
    await rejected(change({}), 404);
  });

  test('are not created or changed if a change would be left out', async () => {
    await newStack('proj', 'prod');
    await ok(calls.call('POST', 'policygroups', { name: 'group' }));
    const read = async () => (await ok(calls.call('GET', 'policygroups'))).json.policyGroups;
    const before = await read();
    // As `pulumi policy group new|edit --stack-rule env=prod` sends it.
    const rule = {
      __type: 'PermissionExpressionEqual',
      left: { __type: 'PermissionExpressionTag', context: { __type: 'PermissionExpressionStack' }, key: 'env' },
      right: { __type: 'PermissionLiteralExpressionString', value: 'prod' },
    };
    const prod = { addStack: { name: 'prod', routingProject: 'proj' } };
    const unserved: [object, RegExp][] = [
      [{ stackMatchRule: rule }, /no match rules/],
      [{ accountMatchRule: rule }, /Insights accounts/],
      [{ agentPoolId: 'pool' }, /Audit groups/],
    ];
    for (const [part, why] of unserved) {
      expect(await rejected(calls.call('POST', 'policygroups', { name: 'new', ...part }), 400)).toMatch(why);
      expect(await rejected(calls.call('PATCH', 'policygroups/group', part), 400)).toMatch(why);
      expect(await rejected(calls.call('PATCH', 'policygroups/group/batch', [prod, part]), 400)).toMatch(why);
    }
    const newer = calls.call('PATCH', 'policygroups/group/batch', [prod, { addCluster: 'a', newName: null }]);
    expect(await rejected(newer, 400)).toMatch(/does not know this change.*addCluster/);
    for (const body of [
      { ...prod, addCluster: 'a' },
      { newName: 'new', addCluster: 'a' },
    ])
      expect(await rejected(calls.call('PATCH', 'policygroups/group', body), 400)).toMatch(/: addCluster$/);
    expect(await read()).toEqual(before);
    for (const nothing of [{ removeStackMatchRule: true }, { removeAccountMatchRule: true }, { agentPoolId: '' }])
      await ok(calls.call('PATCH', 'policygroups/group/batch', [nothing]));
  });

  test('are limited by the bytes of configuration that updates of a stack get, in a group and in all groups of the stack', async () => {
    const policies = Array.from({ length: 7 }, (_, at) => ({ name: `p${at}` }));
    for (const name of ['first', 'second', 'third']) await calls.publish({ name, policies });
    for (const name of ['one', 'two']) await ok(calls.call('POST', 'policygroups', { name }));
    const configOf = (bytes: number) => ({ p0: { text: 'x'.repeat(bytes) } });
    const limit = /at most 1048576 are accepted/;
    await ok(calls.enable({ name: 'first', config: configOf(600_000) }, 'one'));
    const change = { policyPacks: ['first', 'second'].map((name) => ({ name, config: configOf(600_000) })) };
    expect(await rejected(calls.enable({ name: 'second', config: configOf(600_000) }, 'one'), 413)).toMatch(limit);
    expect(await rejected(calls.call('PATCH', 'policygroups/one', change), 413)).toMatch(limit);
    await ok(calls.enable({ name: 'second', config: configOf(100_000) }, 'one'));
    await ok(calls.enable({ name: 'first', config: configOf(500_000) }, 'one'));

    const dev = { addStack: { name: 'dev', routingProject: 'proj' } };
    await ok(calls.call('PATCH', 'policygroups/one', dev));
    await ok(calls.enable({ name: 'third', config: configOf(600_000) }, 'two'));
    const message = await rejected(calls.call('PATCH', 'policygroups/two', dev), 413);
    expect(message).toMatch(limit);
    expect(message).toContain('stack proj/dev');
    await ok(calls.enable({ name: 'third', config: configOf(100_000) }, 'two'));
    await ok(calls.call('PATCH', 'policygroups/two', dev));
    // One of its stacks is in no other group.
    await newStack('proj', 'alone');
    await ok(calls.call('PATCH', 'policygroups/two', { addStack: { name: 'alone', routingProject: 'proj' } }));
    expect(await rejected(calls.enable({ name: 'third', config: configOf(600_000) }, 'two'), 413)).toMatch(limit);
    expect((await calls.required()).map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  });

  test('look up what a batch names at once, and read what a pack contains once, before they are locked', async () => {
    await calls.publish({ name: 'first' });
    for (const tag of ['1.0.0', '2.0.0']) await calls.publish({ name: 'second', tag });
    await ok(calls.call('POST', 'policygroups', { name: 'group' }));
    const config = { 'no-buckets': { enforcementLevel: 'advisory' } };
    const batch = Array.from({ length: 60 }, (_, at) => ({
      addStack: { name: 'dev', ...(at % 2 ? { routingProject: 'proj' } : {}) },
      addPolicyPack: { name: at % 3 ? 'first' : 'second', ...(at % 3 === 1 ? { versionTag: '1' } : {}), config },
      ...(at === 0 ? { stacks: [], policyPacks: [] } : {}),
    }));
    const sent = await sentStatements(
      () => ok(calls.call('PATCH', 'policygroups/group/batch', batch)),
      /^(?:policyGroups|policyPacks)\.|^(?:START|COMMIT)/,
    );
    expect(sent).toEqual([
      ...['policyPacks.findReferences', 'policyPacks.findDescription', 'policyPacks.findDescription'],
      ...['START TRANSACTION', 'policyGroups.lockAll', 'policyGroups.lock'],
      ...['policyGroups.findStacks', 'policyGroups.removeStacks', 'policyGroups.addStacks', 'policyGroups.countStacks'],
      ...['policyPacks.lockAll', 'policyPacks.findReferences', 'policyGroups.clearPacks', 'policyGroups.setPacks'],
      ...['policyGroups.findConfigBytes', 'COMMIT'],
    ]);
    const { appliedPolicyPacks, stacks } = (await ok(calls.call('GET', 'policygroups/group'))).json;
    expect(stacks).toEqual([{ name: 'dev', routingProject: 'proj' }]);
    expect(appliedPolicyPacks).toMatchObject([
      { name: 'first', versionTag: '1.0.0', config },
      { name: 'second', versionTag: '2.0.0', config },
    ]);
  });

  test('refuse a batch that configures packs of too many policies', async () => {
    await calls.publish();
    await query(
      app,
      `with p as (insert into policy_packs (organization_id, name, last_version)
         select o.id, 'large-' || n, 1 from organizations o, generate_series(1, 33) n where o.name = $1 returning id)
       insert into policy_pack_versions
           (pack_id, version, version_tag, display_name, description, sha256, size_bytes, stored_bytes, codec, inline_bytes, published_at)
         select p.id, 1, '1', 'large', json_build_object('policies', '[]'::json, 'note', repeat('x', 1048560)), v.sha256, v.size_bytes,
           v.stored_bytes, v.codec, v.inline_bytes, now()
         from p, policy_pack_versions v join policy_packs w on w.id = v.pack_id join organizations o on o.id = w.organization_id
         where o.name = $1`,
      [stack.organization],
    );
    const enable = (count: number, config: object) =>
      calls.call('PATCH', 'policygroups/default-policy-group', {
        policyPacks: Array.from({ length: count }, (_, at) => ({ name: `large-${at + 1}`, config })),
      });
    const message = await rejected(enable(33, { all: 'advisory' }), 413);
    expect(message).toContain('descriptions of 33554432 bytes in total');
    await ok(enable(31, { all: 'advisory' }));
    await ok(enable(33, {}));
  });

  test('are not changed to a version of a pack that was published after its configuration was checked', async () => {
    await calls.publish({ tag: '1.0.0' });
    const { db } = app.context as unknown as { db: { inTransaction: (...args: unknown[]) => Promise<unknown> } };
    const { inTransaction } = db;
    db.inTransaction = async (...args) => {
      db.inTransaction = inTransaction;
      await calls.publish({ tag: '2.0.0', policies: [{ name: 'other' }] });
      return inTransaction.apply(db, args);
    };
    const pack = { name: 'pack', config: { 'no-buckets': 'advisory' } };
    expect(await rejected(calls.enable(pack), 503)).toContain('The versions of policy pack pack are changing');
    expect(await rejected(calls.enable(pack), 400)).toContain('has no policy "no-buckets"');
  });

  test('of many admins at once do not exceed the limit of a stack together', async () => {
    await calls.publish({ policies: [{ name: 'p' }] });
    const names = ['one', 'two', 'three', 'four'];
    for (const name of names) {
      await ok(calls.call('POST', 'policygroups', { name }));
      await ok(calls.enable({ name: 'pack', config: { p: { text: name.padEnd(600_000) } } }, name));
    }
    const body = { addStack: { name: 'dev', routingProject: 'proj' } };
    const responses = await Promise.all(names.map((name) => calls.call('PATCH', `policygroups/${name}`, body)));
    expect(responses.map(({ status }) => status).sort()).toEqual([204, 413, 413, 413]);
    expect(await calls.required()).toHaveLength(1);
  });

  test('show the stacks that the caller may read', async () => {
    await newStack('proj', 'prod');
    await ok(calls.call('POST', 'policygroups', { name: 'group' }));
    const both = ['dev', 'prod'].map((name) => ({ name, routingProject: 'proj' }));
    await ok(calls.call('PATCH', 'policygroups/group', { stacks: both }));
    const viewer = await person(app, stack.organization, 'viewer');
    const admin = await person(app, stack.organization, 'admin');
    for (const { organizationId, userId } of [viewer, admin])
      await grant(app, organizationId, { userId }, 'deny', ['read'], { stacks: 'proj/prod' });
    const shownTo = async (auth: string) =>
      (await ok(app.call('GET', `${calls.path}/policygroups/group`, { auth }))).json.stacks;
    expect(await shownTo(viewer.auth)).toEqual([{ name: 'dev', routingProject: 'proj' }]);
    expect(await shownTo(admin.auth)).toEqual(both);
  });

  test('take a stack without its project if only one has the name', async () => {
    await newStack('proj', 'prod');
    await ok(calls.call('POST', 'policygroups', { name: 'group' }));
    const add = (name: string) => calls.call('PATCH', 'policygroups/group', { addStack: { name } });
    await ok(add('prod'));
    const other = await newStack('other', 'prod');
    expect(await rejected(add('prod'), 400)).toContain('<project>/prod');
    await ok(app.call('DELETE', other, { auth: stack.auth }));
    await ok(add('prod'));
  });

  test('the default one is neither removed, renamed nor given stacks, and other kinds are refused', async () => {
    const change = (body: object) => calls.call('PATCH', 'policygroups/default-policy-group', body);
    await rejected(calls.call('DELETE', 'policygroups/default-policy-group'), 409);
    await rejected(change({ newName: 'mine' }), 409);
    await rejected(change({ addStack: { name: 'dev' } }), 409);
    await rejected(calls.call('POST', 'policygroups', { name: 'a', mode: 'audit' }), 400);
    await rejected(calls.call('POST', 'policygroups', { name: 'a', entityType: 'accounts' }), 400);
    await ok(change({ stacks: [], insightsAccounts: [] }));
  });

  test('of another organization do not reach its stacks and packs', async () => {
    const other = await createStack(app);
    await calls.publish();
    const theirs = new PolicyCalls(app, other);
    await rejected(theirs.enable({ name: 'pack' }), 404);
    await ok(calls.enable({ name: 'pack' }));
    expect(await theirs.required()).toEqual([]);
  });
});

describe('stored archives', () => {
  test('live as long as a version refers to them', async () => {
    await calls.publish({ archive: largeArchive });
    const keys = await storedKeys(app);
    const [row] = await query<{ blob_key: string }>(
      app,
      `select v.blob_key from policy_pack_versions v join policy_packs p on p.id = v.pack_id
       join organizations o on o.id = p.organization_id where o.name = $1`,
      [stack.organization],
    );
    const key = row?.blob_key as string;
    expect(keys).toContain(key);
    const sweep = async () => {
      await letBlobsAge(app);
      await sweepBlobs(app.context);
    };
    await sweep();
    expect(await app.context.blobRows.listReferenced([key])).toEqual([key]);
    // Marked by mistake.
    await query(app, 'update blobs set unreferenced_since = now() where key = $1', [key]);
    await sweep();
    expect(await storedKeys(app)).toContain(key);
    await ok(calls.call('DELETE', 'policypacks/pack'));
    await sweep();
    expect(await storedKeys(app)).not.toContain(key);
    await sweep();
    expect(await blobRowKeys(app)).not.toContain(key);
  });

  test('wait their turn with other downloads before a blob is opened, and end it with the response', async () => {
    await calls.publish({ name: 'small' });
    await calls.publish({ name: 'large', archive: largeArchive });
    for (const name of ['small', 'large']) await ok(calls.enable({ name }));
    const [large, small] = (await calls.required()) as [{ packLocation: string }, { packLocation: string }];
    const downloads = blobDownloads(app.context.blobs);
    const others = await Promise.all(
      Array.from({ length: 64 }, () => downloads.take({ userId: null, tokenId: 't', ...stack }, null)),
    );
    const download = calls.download(large);
    await until(() => downloads.waiting === 1, 'a download that waits');
    await ok(calls.download(small));
    others.pop()?.();
    expect((await ok(download)).bytes.equals(largeArchive)).toBe(true);
    await until(() => downloads.running === others.length, 'the end of the download');
    // A response of which nothing was read.
    const unread = await new PolicyPackService(app.context).open(
      new URL(large.packLocation).pathname.split('/').at(-1) as string,
      { expires: String(Number.MAX_SAFE_INTEGER), signature: '' },
    );
    expect(downloads.running).toBe(others.length + 1);
    await unread.bytes[Symbol.asyncIterator]().return?.();
    for (const end of others) end();
    expect(downloads.running).toBe(0);
  });

  test('are checked when they are read; damaged ones are reported and never complete', async () => {
    await calls.publish({ name: 'small' });
    await calls.publish({ name: 'large', archive: largeArchive });
    for (const name of ['small', 'large']) await ok(calls.enable({ name }));
    const [large, small] = (await calls.required()) as { packLocation: string }[];
    const rows = await query<{ id: string; inline_bytes: Buffer | null; blob_key: string | null }>(
      app,
      `select v.id, v.inline_bytes, v.blob_key from policy_pack_versions v join policy_packs p on p.id = v.pack_id
       join organizations o on o.id = p.organization_id where o.name = $1 order by p.name`,
      [stack.organization],
    );
    const [largeRow, smallRow] = rows;
    const flipped = flipBit(smallRow?.inline_bytes as Buffer, 20, 0);
    await query(app, 'update policy_pack_versions set inline_bytes = $2 where id = $1', [smallRow?.id, flipped]);
    const file = await blobFile(app, largeRow?.blob_key as string);
    const bytes = await readFile(file);
    await writeFile(file, flipBit(bytes, bytes.length - 1000, 3));
    expect(await rejected(calls.download(small as never), 500)).toContain('small 1.0.0 is damaged');
    await expect(calls.download(large as never)).rejects.toThrow();
    const { damagedArchives } = await readBackDocuments(app.context, null);
    expect(damagedArchives.sort()).toEqual([largeRow?.id, smallRow?.id].sort());
    expect((await app.context.policyArchives.readStatistics()).damaged).toBe(2);
    await query(app, 'update policy_pack_versions set inline_bytes = $2 where id = $1', [
      smallRow?.id,
      smallRow?.inline_bytes,
    ]);
    await writeFile(file, bytes);
    expect((await readBackDocuments(app.context, null)).damagedArchives).toEqual([]);
    expect((await app.context.policyArchives.readStatistics()).damaged).toBe(0);
    expect((await calls.download(large as never)).bytes.equals(largeArchive)).toBe(true);
  });
});

test('an organization has a limited number of policy groups, and a group of stacks', async () => {
  const groups = `/api/orgs/${stack.organization}/policygroups`;
  const create = (name: string) => app.call('POST', groups, { auth: stack.auth, body: { name } });
  await ok(create('first'));
  await query(
    app,
    `insert into policy_groups (organization_id, name)
     select id, 'g' || n from organizations, generate_series(1, 500 - 2) n where name = $1`,
    [stack.organization],
  );
  expect(await rejected(create('more'), 409)).toContain('at most 500 policy groups');

  const project = `many-${stack.organization}`;
  await newStack(project, 'one-more');
  await query(
    app,
    `with parent as (select p.* from projects p join organizations o on o.id = p.organization_id where o.name = $1 and p.name = $2),
       added as (insert into stacks (project_id, name) select parent.id, 's' || n from parent, generate_series(1, 10000) n returning id)
     insert into policy_group_stacks (group_id, stack_id)
     select g.id, added.id from added, policy_groups g join organizations o on o.id = g.organization_id
     where o.name = $1 and g.name = 'first'`,
    [stack.organization, project],
  );
  const add = (body: object) => app.call('PATCH', `${groups}/first`, { auth: stack.auth, body });
  expect(await rejected(add({ addStack: { name: 'one-more', routingProject: project } }), 409)).toContain(
    'at most 10000 stacks',
  );
  // Deleted ones do not count: recreated stacks do not fill a group.
  await query(
    app,
    `update stacks set deleted_at = now() where name = 's1' and project_id = (
       select p.id from projects p join organizations o on o.id = p.organization_id where o.name = $1 and p.name = $2)`,
    [stack.organization, project],
  );
  await ok(add({ addStack: { name: 'one-more', routingProject: project } }));
  await ok(add({ stacks: [{ name: 'one-more', routingProject: project }] }));
});
