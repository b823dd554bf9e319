import { beforeAll } from '@jest/globals';
import { createScene, headersOf, routeNamed, type Scene } from './every-body-route.ts';
import { type TestApp, type TestAppOptions, testApp } from './test-app.ts';
import { type WireAnswer, WireServer } from './wire.ts';

/** Members exist once the hooks of the test file have run. */
export interface BodyRoutes {
  readonly app: TestApp;
  server: WireServer;
  scene: Scene;
  /** `name` is of `allRouteNames`. */
  send(name: string, body: string | Buffer, headers?: Readonly<Record<string, string>>): Promise<WireAnswer | null>;
}

/** Starts an app for the tests of a file. */
export function bodyRoutes(options: TestAppOptions = {}): BodyRoutes {
  const app = testApp(options);
  const routes = {
    app,
    send(name, body, headers = {}) {
      const route = routeNamed(routes.scene, name);
      return routes.server.request(route.method, route.url, { headers: headersOf(route, headers), body });
    },
  } as BodyRoutes;
  beforeAll(async () => {
    routes.server = await WireServer.listen(app);
    routes.scene = await createScene(app);
  });
  return routes;
}
