import { runEncrypted } from '../../support/sealed-app.ts';

await runEncrypted(() => import('../damaged-documents.test.ts'));
