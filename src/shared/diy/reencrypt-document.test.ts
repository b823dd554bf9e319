import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type DocumentSecrets, reencryptDocument } from './reencrypt-document.ts';

const signature = '"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"';
const other = '"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e"';

/** A document with a secret of these keys, one of others, and values that only look like secrets. */
function documentWith(provider: string, own: string): string {
  return `{"version":3,"deployment":{"secrets_providers": ${provider},"resources":[{"urn":"a","inputs":{
    "own":{${signature},"ciphertext":"${own}"},"list":[{${signature}, "ciphertext" : "${own}"}],
    "foreign":{${signature},"ciphertext":"foreign"},"plain":{"ciphertext":"own"},
    "reference":{${other},"ciphertext":"own"},"nested":{${signature},"x":{"ciphertext":"own"}}}}]}}`;
}

async function reencrypted(text: string, sizes: readonly number[]): Promise<{ text: string; found: DocumentSecrets }> {
  const bytes = Buffer.from(text);
  const chunks = async function* (): AsyncGenerator<Buffer> {
    let at = 0;
    for (const size of [...sizes, bytes.length]) {
      yield Buffer.from(bytes.subarray(at, at + size));
      at += size;
    }
  };
  const found: DocumentSecrets = { provider: null, reencrypted: 0, kept: 0 };
  const target = {
    provider: async ({ type }: { readonly type: string }) => (type === 'service' ? { type: 'passphrase' } : null),
    reencrypt: async (values: readonly string[]) => values.map((each) => (each === 'own' ? 'v1:new' : null)),
  };
  const parts = await Array.fromAsync(reencryptDocument(chunks(), target, found));
  return { text: Buffer.concat(parts).toString(), found };
}

test('only secrets of the keys and the provider of the service are replaced, wherever the chunks are cut', async () => {
  const service = '{"type":"service","state":{"url":"http://x","stack":"s"}}';
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 40 }), async (sizes) => {
      const { found, text } = await reencrypted(documentWith(service, 'own'), sizes);
      expect(text).toBe(documentWith('{"type":"passphrase"}', 'v1:new'));
      expect(found).toEqual({
        provider: { type: 'service', state: { url: 'http://x', stack: 's' } },
        reencrypted: 2,
        kept: 1,
      });
    }),
  );
});

test('a document of another provider keeps its bytes', async () => {
  const text = documentWith('{"type":"cloud","state":{"url":"awskms://x"}}', 'other');
  expect((await reencrypted(text, [100, 7, 60])).text).toBe(text);
});
