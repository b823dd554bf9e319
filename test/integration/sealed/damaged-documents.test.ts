import { runSealed } from '../../support/sealed-app.ts';

await runSealed(() => import('../damaged-documents.test.ts'));
