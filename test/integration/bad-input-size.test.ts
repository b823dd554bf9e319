import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { bodyRoutes } from '../support/body-routes.ts';
import { allRouteNames, bomb, createScene, headersOf, routeNamed, routeNames } from '../support/every-body-route.ts';
import { createTestApp } from '../support/test-app.ts';
import { expectNothingChanged, expectRejection, head, settled, WireServer } from '../support/wire.ts';

const mib = 1024 * 1024;

const routes = bodyRoutes({
  settings: {
    HOLDFAST_MAX_BODY_BYTES: String(32 * mib),
    maxControlBodyBytes: 4 * mib,
    headersTimeoutSeconds: 2,
  },
});
const { app, send } = routes;

const gzip = { 'Content-Encoding': 'gzip' };

/** Runs `act` and fails if the process grows by more than `maxBytes` meanwhile. */
async function bounded<T>(maxBytes: number, act: () => Promise<T>): Promise<T> {
  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  try {
    return await act();
  } finally {
    clearInterval(timer);
    peak = Math.max(peak, process.memoryUsage.rss());
    expect((peak - before) / mib).toBeLessThan(maxBytes / mib);
  }
}

describe('gzip bombs', () => {
  const bombs = {
    // 1032 to 1: 256 KiB of zeros in about 264 bytes.
    control: bomb(64 * mib),
    // Small enough to be committed directly. It states its true size, so a worker handles it.
    honest: bomb(96 * mib),
    // A small second member at the end states a small size, so the API inflates the body itself.
    lying: Buffer.concat([bomb(96 * mib), gzipSync(' ')]),
    // Above the limit for direct commits: sent straight to a worker.
    large: Buffer.concat([bomb(96 * mib), gzipSync(Buffer.alloc(300 * 1024), { level: 0 })]),
    // The body is about a millionth of the size of the doubly inflated content.
    nested: gzipSync(bomb(128 * mib), { level: 9 }),
  };

  test('the bombs are small', () => {
    expect(bombs.honest.length).toBeLessThan(256 * 1024);
    expect(bombs.lying.length).toBeLessThan(256 * 1024);
    expect(bombs.large.length).toBeGreaterThan(256 * 1024);
  });

  test.each(routeNames.control)('%s answers 413', async (name) => {
    await expectNothingChanged(routes.server, () =>
      bounded(64 * mib, async () => {
        expectRejection(await send(name, bombs.control, gzip), 413);
        expectRejection(await send(name, bombs.nested, gzip), 400);
      }),
    );
  });

  test.each(
    routeNames.payload.flatMap((name) => (['honest', 'lying', 'large'] as const).map((kind) => [name, kind] as const)),
  )('%s answers 413 to one that is %s', async (name, kind) => {
    await expectNothingChanged(routes.server, () =>
      bounded(160 * mib, async () => {
        expectRejection(await send(name, bombs[kind], gzip), 413);
      }),
    );
  });

  test('the API does not inflate a bomb beyond its stated size, for any limit', async () => {
    await using other = await createTestApp();
    const otherServer = await WireServer.listen(other);
    const otherScene = await createScene(other);
    const lie = Buffer.concat([bomb(200 * mib), gzipSync(' ')]);
    expect(lie.length).toBeLessThan(256 * 1024);
    for (const name of ['journalentries', 'events/batch']) {
      const route = routeNamed(otherScene, name);
      await expectNothingChanged(otherServer, () =>
        bounded(100 * mib, async () => {
          const headers = headersOf(route, gzip);
          expectRejection(await otherServer.request(route.method, route.url, { headers, body: lie }), 413);
        }),
      );
    }
  });

  test('twenty at once use no more memory than a few', async () => {
    await expectNothingChanged(routes.server, () =>
      bounded(400 * mib, async () => {
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            send(
              routeNames.payload[index % routeNames.payload.length] as string,
              index % 2 ? bombs.lying : bombs.large,
              gzip,
            ),
          ),
        );
        for (const answer of answers) expectRejection(answer, [413, 503]);
      }),
    );
  });
});

describe('bodies that are too large without compression', () => {
  test.each(routeNames.control)(
    '%s answers 413 before reading the body when Content-Length is too large',
    async (name) => {
      const route = routeNamed(routes.scene, name);
      await expectNothingChanged(routes.server, async () => {
        expectRejection(
          await routes.server.send(
            head(route.method, route.url, { headers: headersOf(route), length: 4 * mib + 1 }),
            '{',
          ),
          413,
        );
      });
    },
  );

  test.each(routeNames.payload)('%s answers 413 before it has read one that says so', async (name) => {
    const route = routeNamed(routes.scene, name);
    await expectNothingChanged(routes.server, async () => {
      for (const length of [32 * mib + 1, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
        expectRejection(
          await routes.server.send(head(route.method, route.url, { headers: headersOf(route), length }), '{'),
          413,
        );
      }
    });
  });

  test.each(allRouteNames)('%s answers 413 once a chunked body has grown too large', async (name) => {
    const route = routeNamed(routes.scene, name);
    await expectNothingChanged(routes.server, async () => {
      const connection = routes.server.connect();
      const maxBytes = route.kind === 'control' ? 4 * mib : 32 * mib;
      await connection.write(
        head(route.method, route.url, { headers: headersOf(route, { 'Transfer-Encoding': 'chunked' }) }),
      );
      const chunk = Buffer.concat([
        Buffer.from(`${mib.toString(16)}\r\n`),
        Buffer.alloc(mib, 0x20),
        Buffer.from('\r\n'),
      ]);
      for (let sent = 0; sent <= maxBytes; sent += mib) await connection.write(chunk);
      expectRejection(await connection.answer(), 413);
      connection.destroy();
    });
  });
});

describe('bodies with very many elements', () => {
  const many = (count: number, unit: string) => unit.repeat(count - 1) + unit.slice(0, -1);

  test.each([
    ['journalentries', `{"entries":[${many(1_000_000, '{"kind":0,"sequenceID":7},')}]}`],
    ['events/batch', `{"events":[${many(1_000_000, '{"sequence":7},')}]}`],
    ['checkpoint', `{"version":3,"deployment":{"resources":${many(1_000_000, '{},')}]}}`],
  ])('%s', async (name, body) => {
    await expectNothingChanged(routes.server, () =>
      bounded(300 * mib, async () => {
        expectRejection(await send(name, gzipSync(body), gzip), name === 'checkpoint' ? 400 : 413);
      }),
    );
  });

  test.each([
    ['tags', `{${Array.from({ length: 201 }, (_, index) => `"t${index}":"v"`).join(',')}}`, 400],
    [
      'create stack',
      `{"stackName":"x","tags":{${Array.from({ length: 50_000 }, (_, index) => `"t${index}":"v"`).join(',')}}}`,
      400,
    ],
    ['batch-encrypt', `{"plaintexts":[${many(100_001, '"",')}]}`, 400],
    ['batch-decrypt', `{"ciphertexts":[${many(100_001, '"",')}]}`, 400],
    ['batch-encrypt', `{"plaintexts":[${many(1_300_000, '"",')}]}`, 400],
    ['batch-decrypt', `{"ciphertexts":[${many(1_300_000, '[],')}]}`, 400],
    ['create update', `{"config":{"a":[${many(1_300_000, '{},')}]}}`, 413],
    ['rename', `{"newName":"x","y":[${many(1_300_000, '{},')}]}`, 413],
    ['rename', `{"newName":"${'x'.repeat(3 * mib)}"}`, 400],
    ['create stack', `{"stackName":"${'x'.repeat(3 * mib)}"}`, 400],
  ] as const)('%s rejects them %#', async (name, body, status) => {
    await expectNothingChanged(routes.server, () =>
      bounded(200 * mib, async () => {
        expectRejection(await send(name, gzipSync(body), gzip), status);
      }),
    );
  });

  test('a value of the largest allowed size is encrypted and decrypted', async () => {
    const { idle } = routes.scene;
    const plaintext = Buffer.alloc(2.9 * mib, 'x').toString('base64');
    const encrypted = await app.call('POST', `${idle.path}/encrypt`, { auth: idle.auth, body: { plaintext } });
    expect(encrypted.status).toBe(200);
    const { ciphertext } = encrypted.json;
    // The ciphertext is a little longer than the value and above the limit of this routes.server.
    const decrypted = await app.call('POST', `${idle.path}/decrypt`, { auth: idle.auth, body: { ciphertext } });
    expect([200, 413]).toContain(decrypted.status);
    if (decrypted.status === 200) expect(decrypted.json.plaintext).toBe(plaintext);
  });

  test('ten thousand entries and a hundred thousand events are accepted', async () => {
    const { journal, plain } = routes.scene;
    const entries = Array.from(
      { length: 10_000 },
      (_, index) => `{"version":1,"kind":0,"sequenceID":${index + 1},"operationID":${index + 1}}`,
    );
    const journalled = await app.call('PATCH', `${journal.update.path}/journalentries`, {
      auth: journal.update.lease,
      body: `{"entries":[${entries.join(',')}]}`,
    });
    expect(journalled.status).toBe(204);
    const events = Array.from(
      { length: 100_000 },
      (_, index) => `{"sequence":${index},"timestamp":1,"cancelEvent":{}}`,
    );
    const recorded = await app.call('POST', `${plain.update.path}/events/batch`, {
      auth: plain.update.lease,
      body: `{"events":[${events.join(',')}]}`,
    });
    expect(recorded.status).toBe(204);
    await settled(app);
    const page = await app.call('GET', `${plain.update.path}/events`, { auth: plain.auth });
    expect(page.json.events).toHaveLength(500);
  });
});
