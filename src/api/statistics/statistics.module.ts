import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { CiBoard } from './ci-board.ts';
import { FigureService } from './figure-service.ts';
import { registerFigureRoutes } from './figures.routes.ts';

/** The services of the statistics of updates and CI. Called once per app. */
export function createStatisticsServices(context: ApiContext) {
  return { figures: new FigureService(context), ciBoard: new CiBoard(context) };
}

/** The routes of the statistics of updates and CI. */
export function registerStatisticsDomain(
  routes: RouteScope,
  services: Parameters<typeof registerFigureRoutes>[1],
): void {
  registerFigureRoutes(routes, services);
}
