import { suite } from '../testkit/suite.ts';
import { testBundle } from './bundle-suite.ts';

await suite('the break-glass bundle', { ownServer: true }, () => {
  const passphrase = 'correct horse battery';
  testBundle('a passphrase', '3.276', async () => ({
    settings: { HOLDFAST_BUNDLE_PASSPHRASE: passphrase },
    env: { PULUMI_CONFIG_PASSPHRASE: passphrase },
  }));
});
