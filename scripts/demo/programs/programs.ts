import { analytics } from './analytics.ts';
import { cluster } from './cluster.ts';
import { service } from './service.ts';
import { site } from './site.ts';
import { storefront } from './storefront.ts';

/** What the stacks of the demo run. */
export const programs = { storefront, cluster, analytics, site, service } as const;
