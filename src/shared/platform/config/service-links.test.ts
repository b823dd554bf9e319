import { expect, test } from '@jest/globals';
import { parseConfig } from './config.ts';
import { findServiceLinks } from './service-links.ts';
import { Settings } from './settings.ts';

/** What a kubelet sets for a service: its name in capitals, with `_` for `-`. */
function linksOf(service: string, host: string, port: number): Record<string, string> {
  const address = `tcp://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return {
    [`${service}_SERVICE_HOST`]: host,
    [`${service}_SERVICE_PORT`]: String(port),
    [`${service}_SERVICE_PORT_HTTP`]: String(port),
    [`${service}_PORT`]: address,
    [`${service}_PORT_${port}_TCP`]: address,
    [`${service}_PORT_${port}_TCP_PROTO`]: 'tcp',
    [`${service}_PORT_${port}_TCP_PORT`]: String(port),
    [`${service}_PORT_${port}_TCP_ADDR`]: host,
  };
}

test.each([
  ['HOLDFAST', '10.0.0.1'],
  ['HOLDFAST_API', '10.96.12.200'],
  ['HOLDFAST_WEB', 'fd00:10:96::a'],
  ['HOLDFAST_HOLDFAST_API', '10.0.0.1'],
])('the variables that Kubernetes sets for the service %s are ignored', (service, host) => {
  const links = linksOf(service, host, 9090);
  const config = parseConfig({ ...links, HOLDFAST_LOG_LEVEL: 'warn' });
  expect(config).toMatchObject({ logLevel: 'warn', ignoredVariables: Object.keys(links).sort() });
  expect({ ...config, ignoredVariables: [] }).toEqual(parseConfig({ HOLDFAST_LOG_LEVEL: 'warn' }));
});

test('a service with two ports of other protocols is a service too', () => {
  const links = {
    ...linksOf('HOLDFAST_API', '10.0.0.1', 9090),
    HOLDFAST_API_SERVICE_PORT_DNS_UDP: '53',
    HOLDFAST_API_PORT_53_UDP: 'udp://10.0.0.1:53',
    HOLDFAST_API_PORT_53_UDP_PROTO: 'udp',
    HOLDFAST_API_PORT_53_UDP_PORT: '53',
    HOLDFAST_API_PORT_53_UDP_ADDR: '10.0.0.1',
  };
  expect(parseConfig(links).ignoredVariables).toEqual(Object.keys(links).sort());
});

test.each([
  // What someone may set by hand.
  { HOLDFAST_PORT: '9090' },
  { HOLDFAST_PORT: 'tcp://10.0.0.1:9090' },
  { HOLDFAST_API_SERVICE_HOST: '10.0.0.1' },
  { HOLDFAST_SERVICE_HOST: '0.0.0.0', HOLDFAST_SERVICE_PORT: '9090' },
  {
    HOLDFAST_SERVICE_HOST: 'holdfast.example',
    HOLDFAST_SERVICE_PORT: '80',
    HOLDFAST_PORT: 'tcp://holdfast.example:80',
  },
  // A typo beside a complete set.
  { ...linksOf('HOLDFAST_API', '10.0.0.1', 9090), HOLDFAST_API_SERVICE_HOSTS: '10.0.0.1' },
  { ...linksOf('HOLDFAST_API', '10.0.0.1', 9090), HOLDFAST_API_POOL_SIZE: '5' },
  { ...linksOf('HOLDFAST', '10.0.0.1', 9090), HOLDFAST_LISTEN_PORT: '9090' },
  { ...linksOf('HOLDFAST_API', '10.0.0.1', 9090), HOLDFAST_API_PORT_9090_TCP_ADDR: '10.0.0.2' },
  { ...linksOf('HOLDFAST_API', '10.0.0.1', 9090), HOLDFAST_API_PORT: 'tcp://10.0.0.1:9091' },
])('other unknown variables are refused: %j', (environment) => {
  expect(() => parseConfig(environment)).toThrow(/unknown setting/);
});

test('no setting can be taken for the variable of a service', () => {
  for (const name of Object.keys(Settings.properties)) {
    expect(name).not.toMatch(/_SERVICE_(HOST|PORT)|_PORT(_|$)/);
    const service = name.replace(/_[A-Z]+$/, '');
    expect(findServiceLinks({ ...linksOf(service, '10.0.0.1', 9090), [name]: '9090' })).not.toContain(name);
  }
});
