import { runEncrypted } from '../../support/sealed-app.ts';

await runEncrypted(() => import('../scrub.test.ts'));
