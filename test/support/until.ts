export { until } from '../../testkit/until.ts';
