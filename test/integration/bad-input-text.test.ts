import { beforeAll, describe, expect, test } from '@jest/globals';
import { createStack, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, type TestResponse, testApp } from '../support/test-app.ts';
import { settled } from '../support/wire.ts';

const app = testApp({ settings: { HOLDFAST_ORGANIZATION_CREATION: 'anyone' } });
let stack: TestStack;
beforeAll(async () => {
  stack = await createStack(app);
});

const get = (path: string): Promise<TestResponse> => ok(app.call('GET', path, { auth: stack.auth }));

/** Text that has broken other programs: quoting, encodings, formats, control characters. */
const oddTexts = [
  "Robert'); drop table stacks; --",
  `' or '1'='1`,
  '"; select pg_sleep(10); --',
  '$1 $$ $tag$ ?::text %s %n \\',
  '\\u0041 \\x00 \\\\',
  '{"a":1}',
  '<script>alert(1)</script> & < > \u2028 \u2029',
  '\t\r\n\b\f\u0001\u001f\u007f\u0085',
  '\u200b\ufeff\u202etxet\u2066',
  'é vs e\u0301, ﬁ vs fi, İ ı ß',
  '日本語 العربية हिन्दी',
  '👩‍👩‍👧‍👦 🏳️‍🌈 \u{10ffff} \u{1f600}',
  '\uffff\ufffe\ufffd',
  'null',
  'undefined',
  '__proto__',
  '',
  ' ',
  'NaN',
  '1e21',
  '00123',
];

const pollution = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';

function expectClean(): void {
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect(Object.prototype).not.toHaveProperty('polluted');
}

describe('messages', () => {
  test.each(oddTexts)('%j is returned unchanged', async (message) => {
    const created = await ok(
      app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: { metadata: { message } } }),
    );
    const path = `${stack.path}/update/${created.json.updateID}`;
    expect((await get(path)).json.message).toBe(message);
    await ok(app.call('POST', `${path}/cancel`, { auth: stack.auth }));
    const latest = await get(`${stack.path}/updates/latest`);
    expect(latest.json.info.message).toBe(message);
    const history = await get(`${stack.path}/updates?pageSize=1`);
    expect(history.json.updates[0].message).toBe(message);
  });

  test.each(['a\\u0000b', '\\ud800', 'x\\udc00y', '\\udc00\\ud800'])('%s is rejected', async (escaped) => {
    const body = `{"metadata":{"message":"${escaped}"}}`;
    const answer = await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body });
    expect(answer.status).toBe(400);
    expect((await get(stack.path)).json.activeUpdate).toBe('');
  });

  test('a message of one megabyte is returned unchanged', async () => {
    const message = 'ü'.repeat(512 * 1024);
    const created = await ok(
      app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: { metadata: { message } } }),
    );
    const path = `${stack.path}/update/${created.json.updateID}`;
    expect((await get(path)).json.message).toBe(message);
    await ok(app.call('POST', `${path}/cancel`, { auth: stack.auth }));
  });
});

describe('environment and config', () => {
  /** Creates an update with both as raw JSON and returns them as the contract's history shows them: the CLI could not decode all. */
  async function roundTrip(
    environment: string,
    config: string,
  ): Promise<{ text: string; environment: object; config: object }> {
    const body = `{"metadata":{"environment":${environment}},"config":${config}}`;
    const created = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
    await ok(app.call('POST', `${stack.path}/update/${created.json.updateID}/cancel`, { auth: stack.auth }));
    expect((await get(`${stack.path}/updates/latest`)).json.info.updateID).toBe(created.json.updateID);
    const options = { auth: stack.auth, accept: contractAccept };
    const latest = await ok(app.call('GET', `${stack.path}/updates/latest`, options));
    return { text: latest.text, ...latest.json.info };
  }

  test('odd keys and values are returned unchanged', async () => {
    const environment = Object.fromEntries(oddTexts.map((text, index) => [`${text}${index}`, text]));
    const config = Object.fromEntries(
      oddTexts.map((text, index) => [`ns:${text}`, { string: text, secret: index % 2 === 0, object: false }]),
    );
    const back = await roundTrip(JSON.stringify(environment), JSON.stringify(config));
    expect(back.environment).toEqual(environment);
    expect(back.config).toEqual(config);
    // In the same order, too: nothing sorts them.
    expect(Object.keys(back.environment)).toEqual(Object.keys(environment));
  });

  test('NUL and lone surrogates escaped in JSON are returned unchanged', async () => {
    const back = await roundTrip(
      '{"nul\\u0000key":"a\\u0000b","half":"\\ud800x","other":"\\udc00"}',
      '{"n:\\u0000":{"string":"\\u0000\\ud83d"}}',
    );
    expect(back.environment).toEqual({ 'nul\0key': 'a\0b', half: '\ud800x', other: '\udc00' });
    expect(back.config).toEqual({ 'n:\0': { string: '\0\ud83d' } });
  });

  test('__proto__ and constructor are ordinary names', async () => {
    const back = await roundTrip(
      '{"__proto__":"p","constructor":"c","toString":"t","hasOwnProperty":"h"}',
      `{"__proto__":{"string":"p"},"constructor":{"string":"c"},"deep":${pollution}}`,
    );
    expect(back.text).toContain('"__proto__":"p"');
    expect(Object.entries(back.environment)).toEqual([
      ['__proto__', 'p'],
      ['constructor', 'c'],
      ['toString', 't'],
      ['hasOwnProperty', 'h'],
    ]);
    expect(JSON.stringify(back.config)).toBe(
      `{"__proto__":{"string":"p"},"constructor":{"string":"c"},"deep":${pollution}}`,
    );
    expectClean();
  });

  test('values that are not strings are returned unchanged', async () => {
    const environment = '{"n":1,"b":true,"z":null,"l":[1,"2"],"o":{"k":[]}}';
    const config = '{"plain":"text","n":17,"z":null}';
    const back = await roundTrip(environment, config);
    expect(back.environment).toEqual(JSON.parse(environment));
    expect(back.config).toEqual(JSON.parse(config));
  });

  test('null for either is the same as leaving it out', async () => {
    const back = await roundTrip('null', 'null');
    expect(back.environment).toEqual({});
    expect(back.config).toEqual({});
  });

  test('the last of several members with the same name counts', async () => {
    const back = await roundTrip('{"a":"1","a":"2"}', '{"c":{"string":"1"},"c":{"string":"2"}}');
    expect(back.environment).toEqual({ a: '2' });
    expect(back.config).toEqual({ c: { string: '2' } });
  });
});

describe('tags', () => {
  const replace = (body: string | object): Promise<TestResponse> =>
    app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body });

  test.each(oddTexts)('the value %j is returned unchanged and can be used as a filter', async (value) => {
    await ok(replace({ 'my:tag': value }));
    expect((await get(stack.path)).json.tags).toEqual({ 'my:tag': value });
    const query = `organization=${stack.organization}&tagName=my:tag&tagValue=${encodeURIComponent(value)}`;
    const listed = await get(`/api/user/stacks?${query}`);
    expect(listed.json.stacks).toHaveLength(1);
    expect(listed.json.stacks[0].tags).toEqual({ 'my:tag': value });
    if (value !== '') {
      const other = await get(
        `/api/user/stacks?organization=${stack.organization}&tagName=my:tag&tagValue=${encodeURIComponent(`${value}x`)}`,
      );
      expect(other.json.stacks).toEqual([]);
    }
  });

  test.each(['__proto__', 'constructor', 'toString', 'tags', 'a', 'A-Z_0.9:z', 'x'.repeat(40)])(
    'the name %s is accepted',
    async (name) => {
      await ok(replace(`{"${name}":"v","other":"w"}`));
      const answer = await get(stack.path);
      expect(Object.entries(answer.json.tags)).toEqual([
        [name, 'v'],
        ['other', 'w'],
      ]);
      expectClean();
      const listed = await get(`/api/user/stacks?organization=${stack.organization}&tagName=${name}`);
      expect(listed.json.stacks).toHaveLength(1);
    },
  );

  test('a tag in the contract’s form may be called tags', async () => {
    await ok(replace({ tags: { tags: 'v' } }));
    expect((await get(stack.path)).json.tags).toEqual({ tags: 'v' });
    await ok(replace('{"tags":"v"}'));
    expect((await get(stack.path)).json.tags).toEqual({ tags: 'v' });
  });

  test.each([
    ['a name with a blank', { 'a b': 'v' }],
    ['a name that is empty', { '': 'v' }],
    ['a name that is too long', { ['x'.repeat(41)]: 'v' }],
    ['a name with a slash', { 'a/b': 'v' }],
    ['a name with quotes', { "a'b": 'v' }],
    ['a name beyond ASCII', { ä: 'v' }],
    ['a name with a line break at its end', { 'a\n': 'v' }],
    ['a value of 257 bytes', { a: 'x'.repeat(257) }],
    ['a value of 86 characters and 258 bytes', { a: '€'.repeat(86) }],
    ['a value with NUL', { a: 'b\0c' }],
    ['a value that is half a pair', { a: '\ud800' }],
    ['201 tags', Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`t${index}`, '']))],
  ])('%s is rejected wherever tags are set', async (_what, tags) => {
    await ok(replace({ keep: 'this' }));
    const refused = [
      await replace(tags),
      await replace({ tags }),
      await app.call('POST', `/api/stacks/${stack.organization}/proj`, {
        auth: stack.auth,
        body: { stackName: 'tagged', tags },
      }),
    ];
    const created = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    const path = `${stack.path}/update/${created.json.updateID}`;
    refused.push(await app.call('POST', path, { auth: stack.auth, body: { tags } }));
    for (const answer of refused) {
      expect(answer.status).toBe(400);
      expect(answer.json.code).toBe(400);
    }
    expect((await get(path)).json.status).toBe('not started');
    await ok(app.call('POST', `${path}/cancel`, { auth: stack.auth }));
    expect((await get(stack.path)).json.tags).toEqual({ keep: 'this' });
    expect((await app.call('GET', `/api/stacks/${stack.organization}/proj/tagged`, { auth: stack.auth })).status).toBe(
      404,
    );
  });

  test('limits are exact to the byte', async () => {
    const tags = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`t${index}`, `${'€'.repeat(85)}x`]));
    await ok(replace(tags));
    expect((await get(stack.path)).json.tags).toEqual(tags);
  });
});

describe('names', () => {
  const create = (organization: string, project: string, stackName: string): Promise<TestResponse> =>
    app.call('POST', `/api/stacks/${encodeURIComponent(organization)}/${encodeURIComponent(project)}`, {
      auth: stack.auth,
      body: { stackName },
    });

  test.each([
    "dev'; drop table stacks; --",
    'a b',
    ' dev',
    'dev ',
    'dev\n',
    'dev\0',
    'dév',
    'ｄｅｖ',
    'a/b',
    'a\\b',
    'a%2fb',
    '.',
    '..',
    'a:b',
    '<b>',
    'x'.repeat(101),
    'x'.repeat(100_000),
    '\ud800',
    '😀',
  ])('%j is not a valid name for a stack, project or organization', async (name) => {
    const before = await get('/api/user/stacks');
    const answers = [await create(stack.organization, 'proj', name)];
    if (name.isWellFormed() && name.length < 1000 && name !== '.' && name !== '..') {
      answers.push(await create(stack.organization, name, 'dev2'), await create(name, 'proj', 'dev2'));
    }
    answers.push(await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: name } }));
    answers.push(
      await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'dev2', newProject: name } }),
    );
    for (const answer of answers) {
      expect([400, 404, 414]).toContain(answer.status);
      expect(answer.json.code).toBe(answer.status);
      expect(answer.text.length).toBeLessThan(1000);
    }
    expect((await get('/api/user/stacks')).json.stacks).toHaveLength(before.json.stacks.length);
  });

  test.each([
    '__proto__',
    'constructor',
    'toString',
    'a.b',
    '...',
    '-',
    '_',
    '0',
    'null',
    'true',
    'x'.repeat(100),
    'update',
    'export',
    'latest',
  ])('%s is a valid name for a stack and a project', async (name) => {
    await ok(create(stack.organization, name, name));
    const path = `/api/stacks/${stack.organization}/${name}/${name}`;
    const found = await get(path);
    expect(found.json).toMatchObject({ projectName: name, stackName: name });
    await ok(app.call('POST', `${path}/import`, { auth: stack.auth, body: '{"version":3,"deployment":{"a":1}}' }));
    expect((await get(`${path}/export`)).text).toBe('{"version":3,"deployment":{"a":1}}');
    await ok(app.call('DELETE', `${path}?force=true`, { auth: stack.auth }));
    expectClean();
  });
});

/** Text that a round trip through JSON.parse and JSON.stringify, or jsonb, would change. */
const faithful =
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"big":9007199254740993,"bigger":123456789012345678901234567890,' +
  '"exp":1e21,"Exp":1E+2,"one":1.0,"minus":-0,"tiny":1e-400,"huge":1e400,"digits":3.14159265358979323846264338327950288,' +
  '"half":"\\ud800","nul":"a\\u0000b","esc":"\\u003c\\/\\u00e9","dup":1,"dup":2,"raw":"é😀\u2028<>&","": {"":[]} , "2":0,"1":0}';

describe('state', () => {
  const document = `{"version":3,"deployment":${faithful}}`;

  test('an import is exported byte for byte', async () => {
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(document) }));
    expect((await get(`${stack.path}/export`)).text).toBe(document);
    const { version } = (await get(stack.path)).json;
    expect((await get(`${stack.path}/export/${version}`)).text).toBe(document);
    expectClean();
  });

  test('checkpoints of all kinds are exported byte for byte', async () => {
    const update = await startUpdate(app, stack);
    const exported = async (): Promise<string> => (await get(`${stack.path}/export`)).text;
    const patch = (path: string, body: string): Promise<TestResponse> =>
      ok(app.call('PATCH', `${update.path}/${path}`, { auth: update.lease, ...gzipped(body) }));
    await patch('checkpoint', `{"version":3,"isInvalid":false,"deployment":${faithful}}`);
    expect(await exported()).toBe(document);
    const spaced = ` {"deployment" : ${faithful} , "version":4,"features":["taint"]}`;
    await patch('checkpointverbatim', `{"sequenceNumber":1,"untypedDeployment":${spaced},"version":4}`);
    expect(await exported()).toBe(spaced.trim());
    await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'succeeded' } }));
    expectClean();
  });

  test('the state given when a stack is created is exported byte for byte', async () => {
    const body = `{"stackName":"born","state": ${document} }`;
    await ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body }));
    expect((await get(`/api/stacks/${stack.organization}/proj/born/export`)).text).toBe(document);
    expectClean();
  });

  test('resources in a journal keep their bytes', async () => {
    const fresh = await createStack(app);
    const update = await startUpdate(app, fresh, { journal: true });
    const type = 'pulumi:index:Stash';
    const state = `{"urn":"urn:pulumi:dev::proj::${type}::a","custom":true,"type":"${type}","inputs":${faithful},"outputs":{"__proto__":9007199254740993}}`;
    const body =
      `{"entries":[{"version":1,"kind":0,"sequenceID":1,"operationID":1,"__proto__":{"polluted":1}},` +
      `{"version":1,"kind":1,"sequenceID":2,"operationID":1,"removeOld":null,"removeNew":null,"state":${state},"later":1.0}]}`;
    await ok(app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, ...gzipped(body) }));
    await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'succeeded' } }));
    const exported = await ok(app.call('GET', `${fresh.path}/export`, { auth: fresh.auth }));
    expect(exported.text).toContain(faithful);
    expect(exported.text).toContain('{"__proto__":9007199254740993}');
    expectClean();
  });

  test('a rename changes only mentions of the stack', async () => {
    const fresh = await createStack(app);
    await ok(app.call('POST', `${fresh.path}/import`, { auth: fresh.auth, body: document }));
    await ok(app.call('POST', `${fresh.path}/rename`, { auth: fresh.auth, body: { newName: 'other' } }));
    const exported = await ok(
      app.call('GET', `/api/stacks/${fresh.organization}/proj/other/export`, { auth: fresh.auth }),
    );
    expect(exported.text).toBe(document);
  });
});

describe('journal entries of an unknown or impossible kind', () => {
  test.each([
    ['an unknown kind', '{"kind":99,"sequenceID":1,"operationID":1}'],
    ['a kind that is text', '{"kind":"success","sequenceID":1,"operationID":1}'],
    ['no kind', '{"sequenceID":1}'],
    ['positions that do not exist', '{"kind":1,"sequenceID":1,"operationID":1,"removeOld":99}'],
    ['a negative position', '{"kind":1,"sequenceID":1,"operationID":1,"removeOld":-1}'],
    ['a position that is text', '{"kind":1,"sequenceID":1,"operationID":1,"removeOld":"0"}'],
    ['an invalid state', '{"kind":1,"sequenceID":1,"operationID":1,"state":"x"}'],
    ['an operation of another', '{"kind":1,"sequenceID":1,"operationID":1,"removeNew":77}'],
    ['an invalid snapshot', '{"kind":5,"sequenceID":1,"newSnapshot":[]}'],
    ['members of __proto__', `{"kind":0,"sequenceID":1,"operationID":1,"operation":${pollution}}`],
  ])(
    '%s: accepted or rejected, the stack keeps its state and continues after an operator has accepted the fault',
    async (_what, entry) => {
      const fresh = await createStack(app);
      const document = '{"version":3,"deployment":{"resources":[]}}';
      await ok(app.call('POST', `${fresh.path}/import`, { auth: fresh.auth, body: document }));
      const update = await startUpdate(app, fresh, { journal: true });
      const appended = await app.call('PATCH', `${update.path}/journalentries`, {
        auth: update.lease,
        body: `{"entries":[${entry}]}`,
      });
      expect([204, 400]).toContain(appended.status);
      const completed = await app.call('POST', `${update.path}/complete`, {
        auth: update.lease,
        body: { status: 'failed' },
      });
      expect(completed.status).toBeLessThan(500);
      if (completed.status >= 300) {
        await ok(app.call('POST', `${update.path}/cancel`, { auth: fresh.auth }));
      }
      // The compaction that reports the failure runs a little later.
      await settled(app);
      const exported = await ok(app.call('GET', `${fresh.path}/export`, { auth: fresh.auth }));
      expect(exported.json.deployment.resources ?? []).toEqual([]);
      if (completed.status >= 300) {
        const refused = await app.call('POST', `${fresh.path}/update`, { auth: fresh.auth, body: {} });
        expect(refused).toMatchObject({ status: 409, text: expect.stringContaining('holdfast admin accept') });
        const found = await app.context.stacks.find(fresh);
        const { acceptFault, findFaults } = app.context.compactions;
        for (const fault of await findFaults(found?.id ?? '')) await acceptFault(fault);
      }
      const next = await startUpdate(app, fresh, { journal: true });
      await ok(app.call('POST', `${next.path}/complete`, { auth: next.lease, body: { status: 'succeeded' } }));
      expectClean();
    },
  );
});

describe('engine events', () => {
  test('are returned byte for byte', async () => {
    const fresh = await createStack(app);
    const update = await startUpdate(app, fresh);
    const events = [
      `{"sequence":0,"timestamp":1,"stdoutEvent":{"message":"a\\u0000b \\ud800 é😀","n":9007199254740993,"x":${faithful}}}`,
      `{"sequence":1,"timestamp":1,"__proto__":{"polluted":1,"n":1.0}}`,
      `{"timestamp":-1,"constructor":{"prototype":{"polluted":1e21}},"sequence":2}`,
      `{"sequence":3,"timestamp":1,"summaryEvent":{"resourceChanges":{"__proto__":1,"create":2,"bad":"x","big":1e21,"line\\nbreak":3}}}`,
      `{"sequence":4,"type":"own","unknownEvent":{}}`,
      '{"sequence":5}',
    ];
    await ok(
      app.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        ...gzipped(`{"events":[${events.join(' , ')}]}`),
      }),
    );
    const page = await ok(app.call('GET', `${update.path}/events`, { auth: fresh.auth }));
    for (const event of events) expect(page.text).toContain(event.slice(1));
    expect(page.json.events.map((event: { type?: string }) => event.type)).toEqual([
      'stdoutEvent',
      '__proto__',
      'constructor',
      'summaryEvent',
      'own',
      undefined,
    ]);
    expect(page.json.continuationToken).toBe('5');
    await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'succeeded' } }));
    const latest = await ok(app.call('GET', `${fresh.path}/updates/latest`, { auth: fresh.auth }));
    expect(Object.entries(latest.json.info.resourceChanges)).toEqual([
      ['__proto__', 1],
      ['create', 2],
      ['line\nbreak', 3],
    ]);
    expectClean();
  });

  test('only the last of two lists of events counts, and the first event with a given sequence number', async () => {
    const fresh = await createStack(app);
    const update = await startUpdate(app, fresh);
    const body = '{"events":[{"sequence":0,"a":{}}],"events":[{"sequence":0,"b":{}},{"sequence":0,"c":{}}]}';
    await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body }));
    const page = await ok(app.call('GET', `${update.path}/events`, { auth: fresh.auth }));
    expect(page.json.events).toEqual([{ type: 'b', sequence: 0, b: {} }]);
  });

  test.each(['-2', '1.5', '1e3', 'x', "0'; --", '9'.repeat(16), '%00', '-', '+1'])(
    'the token %s is rejected',
    async (token) => {
      const update = await startUpdate(app, await createStack(app));
      const answer = await app.call('GET', `${update.path}/events?continuationToken=${token}`, { auth: stack.auth });
      // Not a member of that organization, so its contents stay hidden.
      expect(answer.status).toBe(404);
    },
  );

  test.each(['-2', '1.5', '1e3', 'x', "0';--", '9'.repeat(16), '%00', '-'])(
    'the token %s is rejected for a member, too',
    async (token) => {
      const fresh = await createStack(app);
      const update = await startUpdate(app, fresh);
      const answer = await app.call('GET', `${update.path}/events?continuationToken=${token}`, { auth: fresh.auth });
      expect(answer.status).toBe(400);
    },
  );
});

describe('secrets', () => {
  test('texts of every kind are decrypted unchanged', async () => {
    const plaintexts = [...oddTexts, '\0', faithful].map((text) => Buffer.from(text).toString('base64'));
    plaintexts.push(Buffer.from([0xff, 0x00, 0x80, 0xfe]).toString('base64'));
    const encrypted = await ok(
      app.call('POST', `${stack.path}/batch-encrypt`, { auth: stack.auth, body: { plaintexts } }),
    );
    const { ciphertexts } = encrypted.json as { ciphertexts: string[] };
    const decrypted = await ok(
      app.call('POST', `${stack.path}/batch-decrypt`, {
        auth: stack.auth,
        body: { ciphertexts: [...ciphertexts, ...ciphertexts] },
      }),
    );
    expect(Object.keys(decrypted.json.plaintexts).sort()).toEqual([...ciphertexts].sort());
    expect(ciphertexts.map((ciphertext) => decrypted.json.plaintexts[ciphertext])).toEqual(plaintexts);
  });

  test.each(['__proto__', 'constructor', 'toString', 'valueOf='])(
    'a ciphertext called %s is rejected',
    async (ciphertext) => {
      const answer = await app.call('POST', `${stack.path}/batch-decrypt`, {
        auth: stack.auth,
        body: { ciphertexts: [ciphertext] },
      });
      expect(answer.status).toBe(400);
      expectClean();
    },
  );
});
