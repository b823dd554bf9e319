import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Kms, KmsError } from '../../src/shared/platform/kms/kms.ts';
import { type KmsKey, parseKmsUrl } from '../../src/shared/platform/kms/kms-url.ts';
import { openKms } from '../../src/shared/platform/kms/open-kms.ts';
import { type FakeService, fakeServices, setEnvironment, startFakeVault } from '../../testkit/kms/fake-services.ts';

describe.each(fakeServices)('%s', (_name, start) => {
  let service: FakeService;
  let restore: () => void;
  beforeEach(async () => {
    service = await start();
    restore = setEnvironment(service.environment);
  });
  afterEach(async () => {
    restore();
    await service[Symbol.asyncDispose]();
  });

  const open = (url: string, { timeoutMs = 60_000, token = service.secret } = {}): Promise<Kms> => {
    const key = parseKmsUrl(url);
    expect(key).not.toEqual(expect.any(String));
    return openKms(key as KmsKey, { readVaultToken: () => token, timeoutMs });
  };
  const faultOf = async (work: Promise<unknown>): Promise<KmsError> => {
    const error = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(KmsError);
    expect(String(error)).not.toContain(service.secret);
    return error as KmsError;
  };
  const plain = randomBytes(32);

  test('unwraps what it has wrapped, also after its key was rotated', async () => {
    const { key, url } = service.addKey('main');
    const kms = await open(url);
    const wrapped = await kms.wrap(plain, 'a');
    expect(wrapped.includes(plain)).toBe(false);
    key.rotate();
    expect(await kms.unwrap(wrapped, 'a')).toEqual(plain);
    expect(await kms.unwrap(await kms.wrap(plain, 'a'), 'a')).toEqual(plain);
  });

  test('says that bytes were wrapped by another key, for something else, or not at all', async () => {
    const [one, other] = await Promise.all(['one', 'other'].map((each) => open(service.addKey(each).url)));
    const wrapped = await (one as Kms).wrap(plain, 'a');
    expect(await faultOf((other as Kms).unwrap(wrapped, 'a'))).toMatchObject({ fault: 'mismatch' });
    expect(await faultOf((one as Kms).unwrap(wrapped, 'b'))).toMatchObject({ fault: 'mismatch' });
    expect(await faultOf((one as Kms).unwrap(randomBytes(80), 'a'))).toMatchObject({ fault: 'mismatch' });
  });

  test('says that a key is disabled, missing or not permitted', async () => {
    const { key, url } = service.addKey('main');
    const kms = await open(url);
    const wrapped = await kms.wrap(plain, 'a');
    service.kms.mode = 'denied';
    expect(await faultOf(kms.unwrap(wrapped, 'a'))).toMatchObject({
      fault: 'refused',
      message: expect.stringMatching(/main.*(denied|not authorized)/i),
    });
    service.kms.mode = 'works';
    key.isEnabled = false;
    expect(await faultOf(kms.unwrap(wrapped, 'a'))).toMatchObject({ fault: 'refused' });
    service.kms.keys.clear();
    expect(await faultOf(kms.wrap(plain, 'a'))).toMatchObject({ fault: 'refused' });
    key.isEnabled = true;
  });

  test('can be tried again when it is down, silent, stuck in the middle of a response, or overloaded', async () => {
    const { url } = service.addKey('main');
    const kms = await open(url, { timeoutMs: 300 });
    for (const mode of ['silent', 'stalled'] as const) {
      service.kms.mode = mode;
      expect(await faultOf(kms.wrap(plain, 'a'))).toMatchObject({ fault: 'passing' });
    }
    service.kms.mode = 'unavailable';
    expect(await faultOf(kms.wrap(plain, 'a'))).toMatchObject({ fault: 'passing' });
    await service.kms.close();
    expect(await faultOf(kms.wrap(plain, 'a'))).toMatchObject({ fault: 'passing' });
  });
});

describe('Vault', () => {
  test('is not called without a token', async () => {
    await using vault = await startFakeVault();
    const { url } = vault.addKey('main');
    const kms = await openKms(parseKmsUrl(url) as KmsKey, { readVaultToken: () => null, timeoutMs: 60_000 });
    await expect(kms.wrap(randomBytes(32), 'a')).rejects.toThrow('HOLDFAST_VAULT_TOKEN_FILE is not set');
    expect(vault.kms.requests).toEqual([]);
  });
});
