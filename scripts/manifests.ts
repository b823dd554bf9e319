import { writeFileSync } from 'node:fs';
import { manifestsFile, renderManifests } from '../testkit/chart.ts';

// `npm run manifests` writes the manifests for users without Helm.

writeFileSync(manifestsFile, await renderManifests());
