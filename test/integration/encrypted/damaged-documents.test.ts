import { runEncrypted } from '../../support/encrypted-app.ts';

await runEncrypted(() => import('../damaged-documents.test.ts'));
