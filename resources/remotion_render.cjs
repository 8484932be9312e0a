// Bundles a sandbox's Remotion project, opens a composition and writes its frames as PNG files.
//
//     node remotion_render.cjs JOB.json
//
// JOB.json is written by remotion_renderer.py, which also reads what this script says: one JSON
// object a line on standard output, {"event": "stage" | "composition" | "frames" | "done" |
// "failed", …}. Remotion is taken from the folder where the user installed it.
//
// The project is written by an agent, so none of it may run here, in Node; it runs in the browser
// alone. What webpack would execute or read for it is refused: loaders named in an import, comments
// that webpack evaluates, configuration files, and all that lies outside the project and the
// installed packages. What Remotion would fetch for it is refused too: this process talks to its
// own browser and to its own server, and to nobody else.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const path = require("node:path");
const {createRequire, SourceMap} = require("node:module");

const job = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const installed = createRequire(path.join(job.packages, "..", "package.json"));
const TEXT_CHARS_MAX = 4000;

const write = process.stdout.write.bind(process.stdout);
const say = (event, facts = {}) => write(`${JSON.stringify({event, ...facts})}\n`);
// Whatever a package prints is no word of ours.
process.stdout.write = process.stderr.write.bind(process.stderr);

class Refused extends Error {}

class Failure extends Error {
  constructor(kind, message, facts = {}) {
    super(message);
    this.kind = kind;
    this.facts = facts;
  }
}

// ---------------------------------------------------------------------------------- the network

const keepToOwn = (port) => {
  // Remotion fetches the sources of media tags itself, from any address, through these. What it
  // needs is its browser's debugging port and the bundle's source map.
  for (const client of [http, https]) {
    for (const name of ["get", "request"]) {
      const original = client[name];
      client[name] = (...args) => {
        const target = typeof args[0] === "object" && !(args[0] instanceof URL) ? args[0] : null;
        const url = target === null ? new URL(String(args[0])) : null;
        const host = url === null ? target.hostname || target.host : url.hostname;
        const way = url === null ? target.path || "" : url.pathname;
        const own = Number(url === null ? target.port : url.port) === port;
        if (client !== http || host !== "127.0.0.1" || !(own || way.startsWith("/devtools/"))) {
          throw new Refused(`nothing can be fetched while a composition is rendered: ${host}`);
        }
        return original.apply(client, args);
      };
    }
  }
  globalThis.fetch = () => Promise.reject(new Refused("nothing can be fetched"));
};

const TYPES = {
  ".css": "text/css",
  ".gif": "image/gif",
  ".html": "text/html; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wav": "audio/wav",
  ".webm": "video/webm",
  ".webp": "image/webp",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
};

// Serves the bundle's files to the browser. Remotion's own server would also fetch any address
// that a page names (`/proxy`); the browser cannot reach that one.
const serve = (folder) =>
  new Promise((resolve, reject) => {
    const server = http.createServer((request, response) => {
      const answer = (status) => response.writeHead(status).end();
      let name;
      try {
        name = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
      } catch {
        return answer(400);
      }
      const file = path.join(folder, path.normalize(name));
      if (!file.startsWith(folder + path.sep) || request.method !== "GET") return answer(403);
      fs.stat(file, (error, found) => {
        if (error || !found.isFile()) return answer(404);
        const type = TYPES[path.extname(file).toLowerCase()] || "application/octet-stream";
        response.writeHead(200, {
          "cache-control": "no-store",
          "content-length": found.size,
          "content-type": type,
        });
        fs.createReadStream(file).on("error", () => response.destroy()).pipe(response);
      });
    });
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });

// A program that starts the browser with what Remotion cannot be told: nothing is reachable but
// the bundle's server.
const browserProgram = (port) => {
  const flags = [
    "--proxy-server=http://unreachable.invalid:9",
    `--proxy-bypass-list=<-loopback>;127.0.0.1:${port}`,
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy",
    "--disable-quic",
    "--disable-file-system",
    `--js-flags=--max-old-space-size=${job.heapMegabytes}`,
  ];
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const file = path.join(job.folder, "browser.sh");
  fs.writeFileSync(
    file,
    [
      "#!/bin/sh",
      "for word do",
      "  shift",
      '  case "$word" in',
      "  --no-proxy-server | --proxy-*) ;;",
      '  *) set -- "$@" "$word" ;;',
      "  esac",
      "done",
      `exec ${quote(job.browser)} "$@" ${flags.map(quote).join(" ")}`,
      "",
    ].join("\n"),
    {mode: 0o700},
  );
  return file;
};

// ---------------------------------------------------------------------------------- the bundle

const within = (file, folder) => file === folder || file.startsWith(folder + path.sep);

const STUDIO_ENTRY = path.join("@remotion", "studio", "dist", "esm", "renderEntry.mjs");

// Lets webpack read the project and the installed packages, and nothing else.
class Confine {
  constructor(tree, packages) {
    this.tree = tree;
    this.packages = packages;
  }

  apply(compiler) {
    const name = "Confine";
    compiler.hooks.normalModuleFactory.tap(name, (factory) => {
      factory.hooks.beforeResolve.tap(name, (data) => this.request(data));
      factory.hooks.afterResolve.tap(name, (data) => this.resource(data.createData.resource));
    });
    compiler.hooks.contextModuleFactory.tap(name, (factory) => {
      factory.hooks.beforeResolve.tap(name, (data) => {
        this.request(data);
        return data;
      });
      factory.hooks.afterResolve.tap(name, (data) => {
        this.resource(data.resource);
        return data;
      });
    });
  }

  request(data) {
    const issuer = (data.contextInfo && data.contextInfo.issuer) || "";
    // The Studio's user interface, most of a bundle and never shown while frames are rendered.
    if (data.request === "./internals.mjs" && issuer.endsWith(STUDIO_ENTRY)) return false;
    if (within(issuer, this.packages) || !issuer) return undefined;
    if (data.request.includes("!")) {
      throw new Refused(`${shown(data.request)}: an import cannot name a loader`);
    }
    if (/^\s*[a-z][a-z0-9+.-]+:/i.test(data.request)) {
      throw new Refused(`${shown(data.request)}: only files and installed packages are imported`);
    }
    return undefined;
  }

  resource(resource) {
    for (const each of [resource].flat()) {
      const file = String(each || "").split("?")[0].replaceAll("\0", "");
      if (!path.isAbsolute(file)) throw new Refused(`${shown(file)}: not a file`);
      const real = fs.realpathSync(file);
      if (!within(real, this.tree) && !within(real, this.packages)) {
        throw new Refused(`${shown(path.basename(file))}: this file is outside of the sandbox`);
      }
    }
  }
}

const shown = (text) => JSON.stringify(String(text).slice(0, 200));

// Webpack evaluates comments such as `webpackChunkName: …` here in Node, and what is in them gets
// out of the context that it makes for that. No comment is one of them.
const evaluateNoComment = (bundlerPackages) => {
  const comments = bundlerPackages("webpack/lib/util/magicComment.js");
  if (!(comments.webpackCommentRegExp instanceof RegExp)) {
    throw new Failure("install", "this webpack is not the one that the template's lock file names");
  }
  comments.webpackCommentRegExp = /(?!)/;
  for (const parser of ["javascript/JavascriptParser.js", "css/CssParser.js"]) {
    bundlerPackages(`webpack/lib/${parser}`);
  }
  comments.createMagicCommentContext = () => {
    throw new Refused("comments are not evaluated");
  };
};

const bundleProject = async () => {
  const bundlerFile = installed.resolve("@remotion/bundler");
  evaluateNoComment(createRequire(bundlerFile));
  const {bundle} = installed("@remotion/bundler");
  try {
    return await bundle({
      entryPoint: job.entry,
      rootDir: job.tree,
      outDir: path.join(job.folder, "bundle"),
      enableCaching: false,
      onProgress: () => {},
      webpackOverride: (config) => ({
        ...config,
        // No browserslist: its configuration can name modules that would be loaded here.
        target: ["web", "es2020"],
        externals: [],
        resolve: {...config.resolve, modules: ["node_modules", job.packages]},
        plugins: [...config.plugins, new Confine(job.tree, job.packages)],
      }),
    });
  } catch (error) {
    throw new Failure("build", messageOf(error));
  }
};

const messageOf = (error) =>
  String((error && error.message) || error)
    .replaceAll("\0", "")
    .slice(0, TEXT_CHARS_MAX);

// ---------------------------------------------------------------------------------- the film

const openComposition = async (renderer, common) => {
  try {
    return await renderer.selectComposition({...common, id: job.id});
  } catch (error) {
    const text = messageOf(error);
    const named = /compositions? (?:is|are)(?: currently)? available:? ?(.*)|Available compositions: ?(.*)/i;
    const found = named.exec(text.replaceAll("\n", " "));
    if (/could not find composition/i.test(text) || found) {
      throw new Failure("unknown", text, {names: found ? found[1] || found[2] || "" : ""});
    }
    throw new Failure("open", text, {place: placeOf(error)});
  }
};

const frameRange = (count) => {
  const first = job.startFrame ?? 0;
  const last = job.endFrame ?? count - 1;
  if (first > last || last >= count) {
    throw new Failure("range", `it has the frames 0 to ${count - 1}`);
  }
  return [first, last];
};

const checkSize = ({width, height, fps}, frames) => {
  const {limits} = job;
  const wrong =
    (width * height > limits.pixels && `${width}x${height} has more than ${limits.pixels} pixels`) ||
    ((width % 2 || height % 2) && `${width}x${height}: width and height have to be even`) ||
    (!(fps >= 1 && fps <= limits.fps) && `${fps} frames a second: 1 to ${limits.fps} are possible`) ||
    (frames > limits.frames && `${frames} frames; ${limits.frames} at most in one call`) ||
    (frames / fps > limits.seconds && `${frames / fps} s; ${limits.seconds} s at most in one call`);
  if (wrong) throw new Failure("size", wrong);
};

// Where in the project an error of a page was thrown: `src/Title.tsx:12`, or nothing.
const placeOf = (error) => {
  const bundle = path.join(job.folder, "bundle", "bundle.js.map");
  if (!fs.existsSync(bundle)) return "";
  const map = new SourceMap(JSON.parse(fs.readFileSync(bundle, "utf8")));
  const stack = String((error && error.stack) || "").slice(0, 20 * TEXT_CHARS_MAX);
  for (const [, line, column] of stack.matchAll(/\/bundle\.js:(\d{1,9}):(\d{1,9})/g)) {
    const found = map.findEntry(Number(line) - 1, Number(column) - 1);
    const source = path.resolve(job.tree, String(found.originalSource || "").replaceAll("\0", ""));
    if (within(source, job.tree)) {
      return `${path.relative(job.tree, source)}:${found.originalLine + 1}`;
    }
  }
  return "";
};

const renderAll = async (renderer, common, composition) => {
  const [first, last] = frameRange(composition.durationInFrames);
  const count = last - first + 1;
  checkSize(composition, count);
  say("composition", {
    fps: composition.fps,
    frames: count,
    height: composition.height,
    width: composition.width,
  });
  let rendered = 0;
  try {
    await renderer.renderFrames({
      ...common,
      composition,
      frameRange: [first, last],
      imageFormat: "png",
      outputDir: path.join(job.folder, "frames"),
      imageSequencePattern: "frame-[frame].[ext]",
      concurrency: job.pages,
      muted: true,
      onStart: () => {},
      onFrameUpdate: (done) => {
        rendered = done;
        say("frames", {done});
      },
    });
  } catch (error) {
    throw new Failure("render", messageOf(error), {frame: first + rendered, place: placeOf(error)});
  }
};

const main = async () => {
  const renderer = installed("@remotion/renderer");
  say("stage", {name: "bundling"});
  const bundled = await bundleProject();
  const server = await serve(fs.realpathSync(bundled));
  const {port} = server.address();
  keepToOwn(port);
  say("stage", {name: "opening"});
  const browserExecutable = browserProgram(port);
  const options = {logLevel: "error", browserExecutable, chromeMode: job.chromeMode};
  const browser = await renderer.openBrowser("chrome", options);
  const common = {
    ...options,
    inputProps: job.inputProps,
    onBrowserLog: () => {},
    puppeteerInstance: browser,
    serveUrl: `http://127.0.0.1:${port}/index.html`,
    timeoutInMilliseconds: job.frameMilliseconds,
  };
  const composition = await openComposition(renderer, common);
  await renderAll(renderer, common, composition);
  await browser.close({silent: true});
  server.close();
  say("done");
};

const end = (error) => {
  const known = error instanceof Failure;
  const facts = known ? error.facts : {};
  say("failed", {kind: known ? error.kind : "start", message: messageOf(error), ...facts});
  process.exit(1);
};

// A page can make a request that Remotion's server stumbles over; that is the page's fault.
process.on("uncaughtException", end);
process.on("unhandledRejection", end);
main().then(() => process.exit(0), end);
