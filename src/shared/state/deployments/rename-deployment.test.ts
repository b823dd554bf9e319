import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ByteSource, bytesOf } from '../../platform/bytes/byte-source.ts';
import { JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import { encodeJsonString } from '../../platform/json/rewrite-strings.ts';
import { renameDeployment } from './rename-deployment.ts';

const from = { organization: 'acme', project: 'shop', stack: 'dev' };
const to = { organization: 'acme', project: 'store', stack: 'prod' };
const signature = '4dabf18193072939515e22adb298388d';
const reference = '5cf8f73096256a8f31e491e813e4eb8e';
const output = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';
const secret = '1b47061264138c4ac30d75fd1eb44270';

const before = 'urn:pulumi:dev::shop::a:b:C::x';
const after = 'urn:pulumi:prod::store::a:b:C::x';
const rootBefore = 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev';
const rootAfter = 'urn:pulumi:prod::store::pulumi:pulumi:Stack::store-prod';

/** Chunks of 5 bytes must have the same result as the whole. */
async function rename(document: string, change = { from, to }): Promise<string> {
  const [chunked, whole] = await Promise.all(
    [5, document.length * 4].map((bytes) => renameInChunks(document, bytes, change)),
  );
  expect(chunked).toBe(whole);
  return whole as string;
}

async function renameInChunks(document: string, chunkBytes: number, change = { from, to }): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of (await renameDeployment(inChunks(document, chunkBytes), change))())
    parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString();
}

function inChunks(document: string, chunkBytes: number): ByteSource {
  const bytes = Buffer.from(document);
  return async function* () {
    // Reuses one buffer for all chunks, as some readers do.
    const chunk = Buffer.alloc(Math.min(chunkBytes, bytes.length));
    for (let at = 0; at < bytes.length; at += chunk.length) {
      yield chunk.subarray(0, bytes.copy(chunk, 0, at, at + chunk.length));
    }
  };
}

/** Takes and returns the raw members of one resource. */
async function renameResource(members: string, change = { from, to }): Promise<string> {
  const [head, tail] = ['{"version":3,"deployment":{"resources":[{', '}]}}'];
  return (await rename(head + members + tail, change)).slice(head.length, -tail.length);
}

describe('renameDeployment', () => {
  test.each([
    ['urn', `"urn":"${before}"`, `"urn":"${after}"`],
    ['parent, the root stack', `"parent":"${rootBefore}"`, `"parent":"${rootAfter}"`],
    ['provider, which keeps its id', `"provider":"${before}::${before}"`, `"provider":"${after}::${before}"`],
    ['deletedWith', `"deletedWith":"${before}"`, `"deletedWith":"${after}"`],
    ['viewOf', `"viewOf":"${before}"`, `"viewOf":"${after}"`],
    ['dependencies', `"dependencies":["${before}","${rootBefore}"]`, `"dependencies":["${after}","${rootAfter}"]`],
    ['replaceWith', `"replaceWith":["${before}"]`, `"replaceWith":["${after}"]`],
    ['aliases', `"aliases":["${before}"]`, `"aliases":["${after}"]`],
    ['propertyDependencies', `"propertyDependencies":{"p":["${before}"]}`, `"propertyDependencies":{"p":["${after}"]}`],
  ])('renames %s', async (_, members, expected) => {
    expect(await renameResource(members)).toBe(expected);
  });

  test.each([
    ['of another stack', 'urn:pulumi:dev2::shop::a:b:C::x'],
    ['of another project', 'urn:pulumi:dev::shop2::a:b:C::x'],
    ['that is incomplete', 'urn:pulumi:dev::shop::a:b:C'],
    ['of another namespace', 'urn:other:dev::shop::a:b:C::x'],
  ])('keeps a URN %s', async (_, urn) => {
    const members = `"urn":"${urn}","dependencies":["${urn}"],"provider":"${urn}"`;
    expect(await renameResource(members)).toBe(members);
  });

  test('keeps the type and name of a resource even if they contain the old names', async () => {
    expect(await renameResource('"urn":"urn:pulumi:dev::shop::a:b:C$pulumi:pulumi:Stack::shop-dev::dev"')).toBe(
      '"urn":"urn:pulumi:prod::store::a:b:C$pulumi:pulumi:Stack::shop-dev::dev"',
    );
  });

  test('keeps the spelling of a project name that the CLI normalizes in paths', async () => {
    const cleaned = { ...from, project: 'my-shop' };
    expect(
      await renameResource('"urn":"urn:pulumi:dev::my shop::pulumi:pulumi:Stack::my shop-dev"', {
        from: cleaned,
        to: { ...cleaned, stack: 'prod' },
      }),
    ).toBe('"urn":"urn:pulumi:prod::my shop::pulumi:pulumi:Stack::my shop-prod"');
  });

  test('renames resource references at any depth, whichever member comes first', async () => {
    const first = (urn: string) => `{"${signature}":"${reference}","id":"${before}","urn":"${urn}"}`;
    const last = (urn: string) => `{"urn":"${urn}","${signature}":"${reference}"}`;
    const members = (urn: string) =>
      `"inputs":{"a":${first(urn)},"b":[[{"c":${last(urn)}}]]},"outputs":{"d":${last(urn)}},"replacementTrigger":${first(urn)}`;
    expect(await renameResource(members(before))).toBe(members(after));
  });

  test('renames the dependencies of output values', async () => {
    const members = (urn: string) =>
      `"inputs":{"a":{"other":["${before}"],"dependencies":["${urn}"],"value":{"${signature}":"${reference}","urn":"${urn}"},"${signature}":"${output}"}}`;
    expect(await renameResource(members(before))).toBe(members(after));
  });

  test('keeps plain property values, secrets and objects with another signature', async () => {
    const members = [
      `"id":"${before}","dependencies":"${before}","urn":["${before}"],"aliases":[["${before}"]],"inputs":{"urn":"${before}","${signature}":"${reference}"},`,
      `"outputs":{"urn":"${before}","a":{"urn":"${before}","dependencies":["${before}"]},"b":"${before}",`,
      `"c":{"${signature}":"${secret}","ciphertext":"${before}"},"d":{"${signature}":"${output}","urn":"${before}"}}`,
    ].join('');
    expect(await renameResource(members)).toBe(members);
  });

  test('does not apply the signature of one object to its neighbor', async () => {
    const members = `"inputs":{"a":[{"${signature}":"${reference}"},{"urn":"${before}"}],"b":{"urn":"${before}"}}`;
    expect(await renameResource(members)).toBe(members);
  });

  test('renames pending operations under both names, and references of snippets', async () => {
    const document = (urn: string) =>
      `{"deployment":{"pending_operations":[{"resource":{"urn":"${urn}","inputs":{}},"type":"creating"}],` +
      `"pendingOperations":[{"type":"${before}","resource":{"parent":"${urn}"}}],` +
      `"snippets":[{"code":"${before}","references":{"a":"${urn}"}}]}}`;
    expect(await rename(document(before))).toBe(document(after));
  });

  test.each([true, false])('renames the service secrets provider, type first: %s', async (typeFirst) => {
    const type = '"type":"service"';
    const state = (org: string, project: string, stack: string) =>
      `"state":{"url":"http://acme","owner":"${org}","project":"${project}","stack":"${stack}","x":"dev"}`;
    const document = (...names: [string, string, string]) => {
      const members = typeFirst ? [type, state(...names)] : [state(...names), type];
      return `{"deployment":{"secrets_providers":{${members.join(',')}}}}`;
    };
    expect(await rename(document('acme', 'shop', 'dev'))).toBe(document('acme', 'store', 'prod'));
    expect(await rename(document('acme', 'shop', 'other'))).toBe(document('acme', 'shop', 'other'));
  });

  test('keeps other secrets providers', async () => {
    const document =
      '{"deployment":{"secrets_providers":{"type":"cloud","state":{"owner":"acme","project":"shop","stack":"dev"}}}}';
    expect(await rename(document)).toBe(document);
  });

  test('does not mix the members of repeated secrets providers', async () => {
    const first = '"secrets_providers":{"type":"service","state":{"owner":"acme","project":"shop","stack":"dev"}}';
    const second = '"secrets_providers":{"type":"service","state":{}}';
    expect(await rename(`{"deployment":{${first},${second}}}`)).toBe(
      `{"deployment":{"secrets_providers":{"type":"service","state":{"owner":"acme","project":"store","stack":"prod"}},${second}}}`,
    );
  });

  test('decodes escapes and writes them as Go does', async () => {
    expect(await renameResource('"urn":"\\u0075rn:pulumi:dev::shop::a:b:C::\\u003cé\\u00e9>\\"\\/"')).toBe(
      '"urn":"urn:pulumi:prod::store::a:b:C::\\u003céé\\u003e\\"/"',
    );
  });

  test('keeps the exact bytes of everything else', async () => {
    const rest =
      '"version" : 3,\n"x":[1e21,9007199254740993,1.0,-0,"\\u003c\\/é<"],"__proto__":{"a":1},"b":1,"b":2,"deployment"\t:{"__proto__":{}';
    const document = (urn: string) => `{${rest},"resources":[ {"z":1.0, "urn" : "${urn}","a":1e21 } ]}}\n`;
    expect(await rename(document(before))).toBe(document(after));
  });

  test('returns the same source when nothing refers to the stack', async () => {
    const document = bytesOf(Buffer.from('{"version":3,"deployment":{"resources":null}}'));
    expect(await renameDeployment(document, { from, to })).toBe(document);
  });

  test('rejects invalid JSON', async () => {
    await expect(rename('{"deployment":{"resources":[}}')).rejects.toThrow(JsonSyntaxError);
  });

  test('is undone by renaming back', async () => {
    const name = fc.string({ unit: 'grapheme' });
    const urn = fc
      .tuple(fc.constantFrom('dev', 'qa'), fc.constantFrom('shop', 'lib'), name)
      .map(([stack, project, rest]) => encodeJsonString(`urn:pulumi:${stack}::${project}::a:b:C::${rest}`));
    const resource = fc.tuple(urn, urn, fc.json(), fc.array(urn)).map(([own, target, value, dependencies]) => {
      const inputs = `{"v":${value},"r":{"urn":${target},"${signature}":"${reference}"}}`;
      return `{"urn":${own},"inputs":${inputs},"dependencies":[${dependencies.join(',')}]}`;
    });
    await fc.assert(
      fc.asyncProperty(fc.array(resource), fc.integer({ min: 1, max: 64 }), async (resources, chunkBytes) => {
        const document = `{"version":3,"deployment":{"resources":[${resources.join(', ')}]}}`;
        const renamed = await renameInChunks(document, chunkBytes);
        expect(renamed).not.toContain('urn:pulumi:dev::shop::');
        expect(await renameInChunks(renamed, chunkBytes, { from: to, to: from })).toBe(document);
      }),
    );
  });
});
