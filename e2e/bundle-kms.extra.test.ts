import { afterAll } from '@jest/globals';
import { startFakeAws, startFakeVault } from '../testkit/kms/fake-services.ts';
import { suite } from '../testkit/suite.ts';
import { testBundle } from './bundle-suite.ts';

// Only the old CLI is built with the secrets providers of clouds.
await suite('the break-glass bundle with a key in a KMS', {
  ownServer: true,
  tools: ['pulumi-3.142', 'test-provider'],
}, () => {
  const ended: AsyncDisposable[] = [];
  afterAll(async () => {
    for (const each of ended) await each[Symbol.asyncDispose]();
  });

  testBundle('a key of AWS KMS', '3.142', async () => {
    const service = await startFakeAws();
    ended.push(service);
    const { url } = service.addKey('bundle');
    return { settings: { HOLDFAST_BUNDLE_KMS: url, ...service.environment }, env: service.environment };
  });

  testBundle('a key of Vault', '3.142', async () => {
    const service = await startFakeVault();
    ended.push(service);
    const { url } = service.addKey('bundle');
    return {
      settings: { HOLDFAST_BUNDLE_KMS: url, ...service.environment },
      env: { VAULT_ADDR: `http://127.0.0.1:${service.kms.port}`, VAULT_TOKEN: service.secret },
    };
  });
});
