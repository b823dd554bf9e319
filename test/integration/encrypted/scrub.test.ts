import { runEncrypted } from '../../support/encrypted-app.ts';

await runEncrypted(() => import('../scrub.test.ts'));
