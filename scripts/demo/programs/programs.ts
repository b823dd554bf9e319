import { analytics } from './analytics.ts';
import { cluster } from './cluster.ts';
import { service } from './service.ts';
import { site } from './site.ts';
import { storefront } from './storefront.ts';

/** The programs of the demo's stacks. */
export const programs = { storefront, cluster, analytics, site, service } as const;
