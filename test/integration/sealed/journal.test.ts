import { runEncrypted } from '../../support/sealed-app.ts';

await runEncrypted(() => import('../journal.test.ts'));
