import { writeFileSync } from 'node:fs';
import { manifestsFile, renderManifests } from '../testkit/chart.ts';

// `npm run manifests` writes the manifests for those who do not use Helm.

writeFileSync(manifestsFile, await renderManifests());
