// Prints what each API of a kafka-clients jar takes, one JSON line a release: the jars before 2.4 hold no message definitions.
//
//   javac ApiRanges.java && for jar in kafka-clients-*.jar; do java -cp .:$jar ApiRanges $jar; done > ranges.jsonl
//
// Three generations of the same facts are asked by reflection, the newest first: ApiKeys.oldestVersion()/latestVersion()
// (1.0 to 2.3), Protocol.REQUESTS (0.10, 0.11). Needs nothing but the jar and its logging interface on the class path.

import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class ApiRanges {
    public static void main(String[] arguments) throws Exception {
        Matcher name = Pattern.compile("(\\d+\\.\\d+\\.\\d+(\\.\\d+)?)\\.jar$").matcher(arguments[0]);
        if (!name.find()) {
            throw new IllegalArgumentException(arguments[0] + ": no Kafka release in the name");
        }
        List<String> apis = new ArrayList<>();
        for (Object api : Class.forName("org.apache.kafka.common.protocol.ApiKeys").getEnumConstants()) {
            short key = api.getClass().getField("id").getShort(api);
            int[] range = range(api, key);
            apis.add(String.format("\"%d\":\"%d-%d\"", key, range[0], range[1]));
        }
        System.out.printf("{\"release\":\"%s\",\"apis\":{%s}}%n", name.group(1), String.join(",", apis));
    }

    private static int[] range(Object api, short key) throws Exception {
        try {
            Method oldest = api.getClass().getMethod("oldestVersion");
            Method latest = api.getClass().getMethod("latestVersion");
            return new int[] {((Number) oldest.invoke(api)).intValue(), ((Number) latest.invoke(api)).intValue()};
        } catch (NoSuchMethodException older) {
            Object requests = Class.forName("org.apache.kafka.common.protocol.Protocol").getField("REQUESTS").get(null);
            Object schemas = Array.get(requests, key);
            int first = 0;
            while (Array.get(schemas, first) == null) {
                first++;
            }
            return new int[] {first, Array.getLength(schemas) - 1};
        }
    }
}
