import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { bundleSecretOf, cliUrlOf } from '../../src/shared/bundle/bundle-key.ts';
import { decryptWith } from '../../src/shared/diy/secrets-crypter.ts';
import type { KmsKey } from '../../src/shared/platform/kms/kms-url.ts';
import { openKms } from '../../src/shared/platform/kms/open-kms.ts';
import { fakeServices, setEnvironment } from '../../testkit/kms/fake-services.ts';
import { runHoldfast } from '../support/admin.ts';
import { importState, readBundled, runBundle, updateInBundle } from '../support/bundle.ts';
import { query } from '../support/database.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, ok } from '../support/state.ts';
import { masterKeys, testApp } from '../support/test-app.ts';

const vaultToken = 'hvs.token-of-the-test';
const app = testApp({ settings: { HOLDFAST_VAULT_TOKEN: vaultToken } });
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-bundle-kms-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const secretOf = (url: string) => bundleSecretOf({ ...app.context.config, bundleKms: url }) as { kms: KmsKey };

test.each(fakeServices)(
  'a key of %s encrypts the secrets as the CLI does, and the work in the bundle returns',
  async (name, start) => {
    await using service = await start();
    const restore = setEnvironment(service.environment);
    try {
      const { key, url } = service.addKey('bundle');
      const secret = secretOf(url);
      const directory = path.join(home, name.replaceAll(' ', '-'));
      const location = `file://${directory}`;
      const stack = await createStack(app);
      await importState(app, stack, 2);
      await runBundle(app, location, { secret });

      const { latest } = (await readBundled(directory, stack)).checkpoint as unknown as {
        latest: {
          secrets_providers: { type: string; state: { url: string; encryptedkey: string } };
          resources: { inputs: { input: { ciphertext: string } } }[];
        };
      };
      const { state, type } = latest.secrets_providers;
      expect([type, state.url]).toEqual(['cloud', cliUrlOf(secret.kms)]);
      const settings = path.join(directory, stack.organization, 'config/proj/Pulumi.dev.yaml');
      expect(parse(await readFile(settings, 'utf8'))).toMatchObject({
        ...{ secretsprovider: state.url, encryptedkey: state.encryptedkey },
      });
      // As gocloud.dev unwraps it: without a context.
      const kms = await openKms(secret.kms, { readVaultToken: () => vaultToken, timeoutMs: 5_000 });
      const dataKey = await kms.unwrap(Buffer.from(state.encryptedkey, 'base64'), null);
      const [first] = latest.resources;
      expect(decryptWith(dataKey, first?.inputs.input.ciphertext ?? '')?.toString()).toBe('"hunter2"');
      const calls = service.kms.requests.length;
      await importState(app, stack, 3);
      await runBundle(app, location, { secret });
      expect((await readBundled(directory, stack)).checkpoint.latest).toMatchObject({
        secrets_providers: { type, state },
      });

      // A key that does not unwrap stops the task, and what is there stays.
      key.isEnabled = false;
      await importState(app, stack, 4);
      await expect(runBundle(app, location, { secret })).rejects.toThrow(/KMS key|Vault key/);
      expect((await readBundled(directory, stack)).checkpoint.latest.resources).toHaveLength(3);
      key.isEnabled = true;
      await runBundle(app, location, { secret });
      expect(service.kms.requests.length - calls).toBeLessThan(6);

      await updateInBundle(directory, stack, 'emergency');
      const returned = await runHoldfast(
        {
          ...{ PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir },
          ...{ HOLDFAST_MASTER_KEYS: masterKeys, HOLDFAST_BUNDLE_URL: location, HOLDFAST_BUNDLE_KMS: url },
          ...{ HOLDFAST_VAULT_TOKEN: vaultToken, ...service.environment },
        },
        ...['bundle', 'return', '--apply', '--stack', 'proj/dev'],
      );
      expect(returned.stdout + returned.stderr).toMatch(
        new RegExp(`${stack.organization}/proj/dev +returned +1 version`),
      );
      expect(returned.stdout + returned.stderr).not.toContain(service.secret);
      const { deployment } = (await exportState(app, stack)).json;
      expect(deployment.secrets_providers.type).toBe('service');
      const { ciphertext } = deployment.resources[0].inputs.input;
      const { json } = await ok(app.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body: { ciphertext } }));
      expect(Buffer.from(json.plaintext, 'base64').toString()).toBe('"hunter2"');
    } finally {
      restore();
      await query(app, 'delete from bundled_stacks');
    }
  },
);

test('a passphrase gives way to a key, and another key to the next: everything is written again', async () => {
  const [, start] = fakeServices[0] as (typeof fakeServices)[0];
  await using service = await start();
  const restore = setEnvironment(service.environment);
  try {
    const directory = path.join(home, 'changed');
    const location = `file://${directory}`;
    const stack = await createStack(app);
    await importState(app, stack, 1);
    const providerOf = async () =>
      (
        (await readBundled(directory, stack)).checkpoint.latest as unknown as {
          secrets_providers: { type: string; state: { url?: string } };
        }
      ).secrets_providers;
    await runBundle(app, location);
    expect((await providerOf()).type).toBe('passphrase');
    for (const name of ['one', 'two']) {
      const { url } = service.addKey(name);
      await runBundle(app, location, { secret: secretOf(url) });
      expect(await providerOf()).toMatchObject({ type: 'cloud', state: { url: cliUrlOf(secretOf(url).kms) } });
    }
    await runBundle(app, location);
    expect((await providerOf()).type).toBe('passphrase');
  } finally {
    restore();
  }
});

test.each([
  ['awskms://alias/Main?region=eu-west-1', 'awskms://alias/Main?region=eu-west-1'],
  [
    'awskms:///arn:aws:kms:eu-central-1:111122223333:key/1234abcd',
    'awskms:///arn:aws:kms:eu-central-1:111122223333:key/1234abcd?region=eu-central-1',
  ],
  [
    'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k',
    'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k',
  ],
  ['vault://vault.example.org/transit/main', 'hashivault://main'],
  ['vault://vault.example.org/team/transit/main?namespace=x', 'hashivault://main?engine=team%2Ftransit'],
])('%s is %s for the CLI', (url, expected) => {
  expect(cliUrlOf(secretOf(url).kms)).toBe(expected);
});

test.each([
  [{ bundleKms: null }, 'HOLDFAST_BUNDLE_URL: needs HOLDFAST_BUNDLE_PASSPHRASE or HOLDFAST_BUNDLE_KMS'],
  [
    { bundleKms: 'awskms://alias/a', passphrase: 'x' },
    'HOLDFAST_BUNDLE_KMS: cannot be set with HOLDFAST_BUNDLE_PASSPHRASE',
  ],
  [{ bundleKms: 'vault://a:secret@b/c/d' }, 'HOLDFAST_BUNDLE_KMS: the URL must not contain a user or password'],
])(
  '%j is refused',
  ({ bundleKms, passphrase = null }: { bundleKms: string | null; passphrase?: string | null }, reason) => {
    const { secrets } = app.context.config;
    expect(() => bundleSecretOf({ bundleKms, secrets: { ...secrets, bundlePassphrase: passphrase } })).toThrow(reason);
  },
);
